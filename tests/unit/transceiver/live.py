"""A transceiver on 127.0.0.1 and aiortc's own peer connections as its clients."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aioice.ice
import httpx
import uvloop
from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.mediastreams import AudioStreamTrack, MediaStreamError, MediaStreamTrack

from transceiver.config import TransceiverConfig
from transceiver.server import Transceiver

KEYS = f"1 {'07' * 32}\n"


def free_port() -> int:
    """A number that is free for UDP and TCP."""
    while True:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
        ):
            udp.bind(("127.0.0.1", 0))
            port: int = udp.getsockname()[1]
            with contextlib.suppress(OSError):
                tcp.bind(("127.0.0.1", port))
                return port


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run on the loop of production."""

    async def main() -> None:
        await scenario()

    before = aioice.ice.get_host_addresses
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(asyncio.wait_for(main(), 60))
    finally:
        aioice.ice.get_host_addresses = before


class Live:
    """The running transceiver, and its control API."""

    def __init__(self, transceiver: Transceiver, http: httpx.AsyncClient, vip: str) -> None:
        self.transceiver = transceiver
        self.http = http
        self.vip = vip

    async def create(self, offer: str, dialect: str = "plain") -> dict[str, Any]:
        body = {"offer": offer, "vips": [self.vip], "dialect": dialect}
        response = await self.http.post("/v1/calls", json=body)
        assert response.status_code == 201, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def show(self, call_id: str) -> dict[str, Any]:
        shown: dict[str, Any] = (await self.http.get(f"/v1/calls/{call_id}")).json()
        return shown


@contextlib.asynccontextmanager
async def serving(tmp_path: Path, **settings: Any) -> AsyncIterator[Live]:
    keys = tmp_path / "route.keys"
    keys.write_text(KEYS)
    vip = f"127.0.0.1:{free_port()}"
    config = TransceiverConfig(
        listen=vip,  # type: ignore[arg-type]
        inner="plain",
        cluster=7,
        keys_file=keys,
        mint=1,
        **settings,
    )
    transceiver = Transceiver(config)
    await transceiver.start()
    try:
        async with httpx.AsyncClient(base_url=f"http://{vip}", trust_env=False) as http:
            yield Live(transceiver, http, vip)
    finally:
        await transceiver.stop()


class Caller:
    """One aiortc peer connection with a silent microphone and a data channel."""

    def __init__(self, live: Live, label: str = "chat") -> None:
        self.live = live
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.pc.addTrack(AudioStreamTrack())
        self.channel: RTCDataChannel = self.pc.createDataChannel(label)
        self.messages: list[Any] = []
        self.frames = 0
        self.call_id = ""
        self._readers: list[asyncio.Task[None]] = []
        self.channel.on("message", self.messages.append)
        self.pc.on("track", self._read)

    def _read(self, track: MediaStreamTrack) -> None:
        async def read() -> None:
            with contextlib.suppress(MediaStreamError):
                while True:
                    await track.recv()
                    self.frames += 1

        self._readers.append(asyncio.ensure_future(read()))

    async def call(self, dialect: str = "plain") -> "Caller":
        await self.pc.setLocalDescription(await self.pc.createOffer())
        created = await self.live.create(self.pc.localDescription.sdp, dialect)
        self.call_id = created["id"]
        await self.pc.setRemoteDescription(RTCSessionDescription(created["answer"], "answer"))
        return self

    async def connected(self, timeout_s: float = 5.0) -> float:
        """Wait until DTLS is done and the channel is open; returns the seconds it took."""
        return await until(
            lambda: self.pc.connectionState == "connected" and self.channel.readyState == "open",
            timeout_s,
        )

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(message) for message in self.messages]

    async def close(self) -> None:
        await self.pc.close()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)


async def until(condition: Callable[[], Any], timeout_s: float = 5.0) -> float:
    """Wait for `condition`; returns the seconds it took."""
    clock = asyncio.get_running_loop().time
    began = clock()
    while not condition():
        assert clock() - began < timeout_s, "it did not happen in time"
        await asyncio.sleep(0.005)
    return clock() - began
