"""An unmodified aiortc `RTCPeerConnection` that speaks, listens and prints one JSON line.

    python -m tests.clients.aiortc_client --url http://…/v1/realtime/calls --seconds 10

Without `--seconds` it prints a line once it talks, and goes on until its stdin is closed. What a
person would hear is kept with `--record`. aiortc never offers 127.0.0.1 as a candidate;
`--loopback` gives it that address, and changes nothing else.
"""

import argparse
import asyncio
import json
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any, cast
from urllib.parse import urljoin

import aioice.ice
import av
import httpx
import numpy as np
from aiortc import (
    MediaStreamError,
    MediaStreamTrack,
    RTCConfiguration,
    RTCPeerConnection,
    RTCSessionDescription,
)

from tests.lab import speech

_FRAME = speech.RATE // 50  # samples of 20 ms
_SETUP_S = 15.0
_DRAIN_S = 0.5  # for packets under way, so that both ends can be compared


class SpeechTrack(MediaStreamTrack):
    """Speech in real time, begun again at its end."""

    kind = "audio"

    def __init__(self, samples: speech.Samples) -> None:
        super().__init__()
        self._pcm = np.round(np.clip(samples, -1, 1) * 32767).astype(np.int16)
        self._position = 0
        self.began: float | None = None  # monotonic time of the first sample

    async def recv(self) -> av.AudioFrame:
        now = time.monotonic()
        self.began = self.began or now
        await asyncio.sleep(max(0.0, self.began + self._position / speech.RATE - now))
        at = np.arange(self._position, self._position + _FRAME)
        frame = av.AudioFrame.from_ndarray(
            self._pcm.take(at, mode="wrap")[np.newaxis], format="s16", layout="mono"
        )
        frame.sample_rate = speech.RATE
        frame.pts = self._position
        frame.time_base = Fraction(1, speech.RATE)
        self._position += _FRAME
        return frame


class Ear:
    """Keeps what a remote track says, mixed to mono."""

    def __init__(self) -> None:
        self._heard: list[speech.Samples] = []
        self.first = asyncio.Event()
        self.began: float | None = None  # monotonic time of the first sample

    async def listen(self, track: MediaStreamTrack) -> None:
        """Until the track ends."""
        try:
            while True:
                frame = cast(av.AudioFrame, await track.recv())
                samples = frame.to_ndarray().reshape(-1, frame.layout.nb_channels)
                self.began = self.began or time.monotonic()
                self._heard.append(samples.mean(axis=1).astype(np.float32) / speech.FULL_SCALE)
                self.first.set()
        except MediaStreamError:
            return

    def samples(self) -> speech.Samples:
        return np.concatenate(self._heard or [np.zeros(0, np.float32)])


async def call(arguments: argparse.Namespace) -> dict[str, Any]:
    """One call. Raises `TimeoutError`, `httpx.HTTPError`."""
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    ear, timeline = Ear(), _Timeline(pc)
    voice = SpeechTrack(speech.read(arguments.wav))
    sender = pc.addTrack(voice)
    listening: list[asyncio.Task[None]] = []
    pc.on("track", lambda track: listening.append(asyncio.create_task(ear.listen(track))))
    channel = pc.createDataChannel("oai-events")
    opened = asyncio.Event()
    channel.on("open", opened.set)
    try:
        async with httpx.AsyncClient(trust_env=False) as http, asyncio.timeout(_SETUP_S):
            await pc.setLocalDescription(await pc.createOffer())
            timeline.begin()
            location = await _negotiate(pc, http, arguments.url)
            timeline.mark("answer_ms")
            await opened.wait()
            timeline.mark("channel_ms")
            await ear.first.wait()
            timeline.mark("first_audio_ms")
        await _talk(arguments.seconds)
        sender.replaceTrack(None)
        await asyncio.sleep(_DRAIN_S)
        report = await _report(pc, location) | {
            "call": await _ask(location),
            "path": await _ask(f"{location}/path"),
        }
    finally:
        await pc.close()
        for task in listening:
            task.cancel()  # a track that never began does not end either
        await asyncio.gather(*listening, return_exceptions=True)
    if arguments.record:
        speech.write_wav(arguments.record, ear.samples())
    return report | {
        "timeline": timeline.marks,
        "channel": opened.is_set(),
        "ear_after_voice_ms": round(1e3 * ((ear.began or 0.0) - (voice.began or 0.0)), 1),
    }


async def _talk(seconds: float | None) -> None:
    if seconds is not None:
        await asyncio.sleep(seconds)
        return
    print(json.dumps({"talking": True}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def _negotiate(pc: RTCPeerConnection, http: httpx.AsyncClient, url: str) -> str:
    response = await http.post(
        url, content=pc.localDescription.sdp, headers={"Content-Type": "application/sdp"}
    )
    response.raise_for_status()
    await pc.setRemoteDescription(RTCSessionDescription(response.text, "answer"))
    return urljoin(url, response.headers["location"])


async def _report(pc: RTCPeerConnection, location: str) -> dict[str, Any]:
    stats = {entry.type: entry for entry in (await pc.getStats()).values()}
    inbound, outbound = stats["inbound-rtp"], stats["outbound-rtp"]
    pair = pc.sctp.transport.transport._connection._nominated.get(1) if pc.sctp else None
    return {
        "id": location.rpartition("/")[2],
        "state": pc.connectionState,
        "remote": f"{pair.remote_addr[0]}:{pair.remote_addr[1]}" if pair else None,
        "packets": {
            "sent": outbound.packetsSent,
            "received": inbound.packetsReceived,
            "lost": inbound.packetsLost,
        },
    }


async def _ask(url: str) -> dict[str, Any] | None:
    """What signaling says about the call, or the way its packets take, if it can tell."""
    async with httpx.AsyncClient(trust_env=False) as http:
        response = await http.get(url)
    answer: dict[str, Any] | None = response.json() if response.is_success else None
    return answer


class _Timeline:
    """Milliseconds since `begin`; ICE and DTLS are marked as the transports say so."""

    def __init__(self, pc: RTCPeerConnection) -> None:
        self.marks: dict[str, float] = {}
        self._began = time.monotonic()
        pc.on("iceconnectionstatechange", lambda: self._ice(pc.iceConnectionState))
        pc.on("connectionstatechange", lambda: self._dtls(pc.connectionState))

    def begin(self) -> None:
        self._began = time.monotonic()

    def mark(self, name: str) -> None:
        self.marks.setdefault(name, round((time.monotonic() - self._began) * 1e3, 1))

    def _ice(self, state: str) -> None:
        if state == "completed":
            self.mark("ice_ms")

    def _dtls(self, state: str) -> None:
        if state == "connected":
            self.mark("dtls_ms")


def main() -> None:
    parser = argparse.ArgumentParser(description="aiortc test client")
    parser.add_argument("--url", required=True, help="where to POST the SDP offer")
    parser.add_argument("--seconds", type=float, help="how long to talk; else until stdin ends")
    parser.add_argument("--wav", type=Path, default=speech.SPOKEN, help="speech to send")
    parser.add_argument("--record", type=Path, help="WAV of what was heard, 48 kHz mono")
    parser.add_argument("--loopback", action="store_true", help="use 127.0.0.1")
    arguments = parser.parse_args()
    if arguments.loopback:
        aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]
    try:
        print(json.dumps(asyncio.run(call(arguments))))
    except (TimeoutError, httpx.HTTPError) as error:
        print(json.dumps({"error": repr(error)}))
        sys.exit(1)


if __name__ == "__main__":
    main()
