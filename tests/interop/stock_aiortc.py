"""aiortc's own `RTCPeerConnection`, as its examples use it: after it has its candidates."""

import asyncio
import time
from fractions import Fraction
from pathlib import Path
from typing import cast

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

from tests.interop.conversation import Talker
from tests.interop.microphone import FRAME, Microphone
from tests.lab import speech


class Aiortc(Talker):
    """`events`: by OpenAI's route, with the channel `oai-events`; else by `/offer`."""

    def __init__(self, url: str, key: str, microphone: Path, events: bool = True) -> None:
        super().__init__()
        self._url, self._key, self._events = url, key, events
        self._pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._voice = Voice(self, Microphone(microphone))
        self._listening: list[asyncio.Task[None]] = []

    async def connect(self) -> None:
        pc = self._pc
        pc.addTrack(self._voice)
        pc.on("track", lambda track: self._listening.append(asyncio.create_task(self._hear(track))))
        channel = pc.createDataChannel("oai-events")
        opened = asyncio.Event()
        channel.on("open", opened.set)
        channel.on("message", self.messages.append)
        await pc.setLocalDescription(await pc.createOffer())
        answer = await (self._by_openai() if self._events else self._by_json())
        await pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await opened.wait()

    async def hang_up(self) -> None:
        await self._pc.close()
        for task in self._listening:
            task.cancel()

    async def _by_openai(self) -> str:
        async with httpx.AsyncClient(trust_env=False) as http:
            response = await http.post(
                f"{self._url}/v1/realtime/calls",
                content=self._pc.localDescription.sdp,
                headers={"Content-Type": "application/sdp", **self._authorization},
            )
        response.raise_for_status()
        self.call_id = response.headers["location"].rpartition("/")[2]
        return response.text

    async def _by_json(self) -> str:
        offer = {"sdp": self._pc.localDescription.sdp, "type": self._pc.localDescription.type}
        async with httpx.AsyncClient(trust_env=False) as http:
            response = await http.post(
                f"{self._url}/offer", json=offer, headers=self._authorization
            )
        response.raise_for_status()
        self.call_id = response.json()["id"]
        return str(response.json()["sdp"])

    @property
    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"}

    async def _hear(self, track: MediaStreamTrack) -> None:
        try:
            while True:
                frame = cast(av.AudioFrame, await track.recv())
                samples = frame.to_ndarray().reshape(-1, frame.layout.nb_channels)
                self.keep(samples.mean(axis=1).astype(np.float32) / speech.FULL_SCALE)
        except MediaStreamError:
            return


class Voice(MediaStreamTrack):
    """The microphone as a track, in real time."""

    kind = "audio"

    def __init__(self, talker: Talker, microphone: Microphone) -> None:
        super().__init__()
        self._talker, self._microphone = talker, microphone
        self._position = 0
        self._began: float | None = None

    async def recv(self) -> av.AudioFrame:
        now = time.monotonic()
        self._began = self._began or now
        await asyncio.sleep(max(0.0, self._began + self._position / speech.RATE - now))
        pcm = self._microphone.frame(self._talker.speaking)
        frame = av.AudioFrame.from_ndarray(pcm[np.newaxis], format="s16", layout="mono")
        frame.sample_rate = speech.RATE
        frame.pts = self._position
        frame.time_base = Fraction(1, speech.RATE)
        self._position += FRAME
        return frame
