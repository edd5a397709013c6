"""A client on aiortc that does over HTTP and data channel what Pipecat's transport does.

    python -m tests.clients.pipecat_client --url http://…

`/start`, then an offer, candidates 200 ms later; on the channel `chat` a ping each second and RTVI
messages. After a turn and its answer it makes a new peer connection in place of the first, as the
transport does when ICE fails. It prints one JSON line. Its offer lacks the transport's two video
sections: aiortc takes no answer that refuses a section.
"""

import argparse
import asyncio
import json
import time
from typing import Any

import httpx
import numpy as np
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from tests.clients.aiortc_client import SpeechTrack
from tests.clients.trickle import take_apart
from tests.conversations.mouth import phrase
from tests.lab import speech

PHRASE_S = 2.0
PAUSE_S = 8.0
BATCH_S = 0.2
PATIENCE_S = 30.0
SESSION = {"instructions": "be brief"}


class Client:
    """One peer connection. `told` has the RTVI messages that came, in order."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        voice = np.concatenate([phrase(0, PHRASE_S), np.zeros(round(PAUSE_S * speech.RATE))])
        self.pc.addTransceiver(SpeechTrack(voice.astype(np.float32)), direction="sendrecv")
        self.channel = self.pc.createDataChannel("chat", ordered=True)
        self._opened = asyncio.Event()
        self.channel.on("message", self._hear)
        self.channel.on("open", self._opened.set)
        self._news = asyncio.Event()
        self.told: list[dict[str, Any]] = []
        self.call = ""
        self.status = 0

    async def connect(self, call: str | None, *, restart: bool) -> None:
        await self.pc.setLocalDescription(await self.pc.createOffer())
        ours = take_apart(self.pc.localDescription.sdp)
        asked = {"sdp": ours.offer, "type": "offer", "pc_id": call, "restart_pc": restart}
        reply = (await self._http.post(self._url, json=asked)).raise_for_status().json()
        self.call = reply["pc_id"]
        await self.pc.setRemoteDescription(RTCSessionDescription(reply["sdp"], reply["type"]))
        await asyncio.sleep(BATCH_S)
        candidates = [
            {"candidate": text, "sdp_mid": "0", "sdp_mline_index": 0}
            for text in (*ours.candidates, "")
        ]
        patched = await self._http.patch(
            self._url, json={"pc_id": self.call, "candidates": candidates}
        )
        self.status = patched.status_code
        await self._opened.wait()
        status = {"type": "trackStatus", "receiver_index": 0, "enabled": True}
        self.channel.send(json.dumps({"type": "signalling", "message": status}))
        self.say("client-ready", {"version": "2.0.0", "about": {"library": "test"}})

    def say(self, kind: str, data: dict[str, Any]) -> None:
        message = {"label": "rtvi-ai", "type": kind, "id": kind, "data": data}
        self.channel.send(json.dumps(message))

    async def ping(self) -> None:
        while True:
            self.channel.send(f"ping: {time.time() * 1e3:.0f}")
            await asyncio.sleep(1)

    async def told_of(self, kind: str) -> None:
        while kind not in self.kinds:
            self._news.clear()
            await self._news.wait()

    @property
    def kinds(self) -> list[str]:
        return [message["type"] for message in self.told]

    def _hear(self, message: str) -> None:
        self.told.append(json.loads(message))
        self._news.set()


async def converse(arguments: argparse.Namespace) -> dict[str, Any]:
    """Raises `TimeoutError`, `httpx.HTTPError`."""
    async with httpx.AsyncClient(trust_env=False, base_url=arguments.url) as http:
        body = {"transport": "webrtc", "body": {"session": SESSION}}
        started = (await http.post("/start", json=body)).raise_for_status().json()
        url = f"/sessions/{started['sessionId']}/api/offer"
        first, second = Client(http, url), Client(http, url)
        pinging = []
        try:
            async with asyncio.timeout(PATIENCE_S):
                await first.connect(None, restart=False)
                pinging.append(asyncio.create_task(first.ping()))
                await first.told_of("bot-started-speaking")
                await first.told_of("bot-stopped-speaking")
            async with asyncio.timeout(PATIENCE_S):
                await second.connect(first.call, restart=True)
                await second.told_of("bot-ready")
            old = (await http.get(f"/v1/realtime/calls/{first.call}")).json()
            new = (await http.get(f"/v1/realtime/calls/{second.call}")).json()
        finally:
            for task in pinging:
                task.cancel()
            await first.pc.close()
            await second.pc.close()
    return {
        "started": started,
        "patched": first.status,
        "told": first.told,
        "calls": [old, new],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="A client like Pipecat's")
    parser.add_argument("--url", required=True, help="where signaling is")
    print(json.dumps(asyncio.run(converse(parser.parse_args()))))


if __name__ == "__main__":
    main()
