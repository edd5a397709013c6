"""A transceiver on 127.0.0.1 and aiortc's own peer connections as its clients."""

import asyncio
import contextlib
import json
import socket
import sys
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


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that are free for UDP and TCP."""
    while True:
        base = free_port()
        with contextlib.ExitStack() as taken, contextlib.suppress(OSError, OverflowError):
            for number in range(count):
                for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                    each = taken.enter_context(socket.socket(socket.AF_INET, kind))
                    each.bind(("127.0.0.1", base + number))
            return base


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


class Remote:
    """The control API of a transceiver."""

    def __init__(self, http: httpx.AsyncClient, vip: str) -> None:
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


class Live(Remote):
    """A transceiver in this process, and its control API."""

    def __init__(self, transceiver: Transceiver, http: httpx.AsyncClient, vip: str) -> None:
        super().__init__(http, vip)
        self.transceiver = transceiver


@contextlib.asynccontextmanager
async def remote(vip: str) -> AsyncIterator[Remote]:
    """The one at `vip`, in a process of its own: waits until it is ready."""
    async with httpx.AsyncClient(base_url=f"http://{vip}", trust_env=False) as http:
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if (await http.get("/readyz")).status_code == 200:
                    break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError(f"the process at {vip} does not get ready")
        yield Remote(http, vip)


def command(tmp_path: Path, listen: str, *options: str, **settings: Any) -> list[str]:
    """Of a transceiver process. `settings` are keys of its configuration."""
    (tmp_path / "route.keys").write_text(KEYS)
    values = {
        "listen": listen,
        "inner": "plain",
        "cluster": 7,
        "keys_file": str(tmp_path / "route.keys"),
        "mint": 1,
        "capacity": 30,
        "max_lateness_ms": 10_000,
    }
    file = tmp_path / "transceiver.toml"
    text = [f"{key} = {json.dumps(value)}\n" for key, value in (values | settings).items()]
    file.write_text("".join(text))
    return [sys.executable, "-m", "transceiver", "serve", "--config", str(file), *options]


@contextlib.asynccontextmanager
async def serving(tmp_path: Path, **settings: Any) -> AsyncIterator[Live]:
    keys = tmp_path / "route.keys"
    keys.write_text(KEYS)
    vip = f"127.0.0.1:{free_port()}"
    values: dict[str, Any] = {
        "listen": vip,
        "inner": "plain",
        "cluster": 7,
        "keys_file": keys,
        "mint": 1,
        "capacity": 30,
        "max_lateness_ms": 10_000,  # tests share their cores with other tests
    }
    config = TransceiverConfig(**(values | settings))
    transceiver = Transceiver(config)
    await transceiver.start()
    try:
        async with httpx.AsyncClient(base_url=f"http://{vip}", trust_env=False) as http:
            yield Live(transceiver, http, vip)
    finally:
        await transceiver.stop()


class Caller:
    """One aiortc peer connection with a silent microphone and a data channel."""

    def __init__(self, live: Remote, label: str = "chat") -> None:
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


@contextlib.asynccontextmanager
async def connected(live: Remote) -> AsyncIterator[Caller]:
    """A caller whose call is up; goes away at the end."""
    caller = Caller(live)
    try:
        await caller.call()
        await caller.connected(20)
        yield caller
    finally:
        await caller.close()


async def until(condition: Callable[[], Any], timeout_s: float = 5.0) -> float:
    """Wait for `condition`; returns the seconds it took."""
    clock = asyncio.get_running_loop().time
    began = clock()
    while not condition():
        assert clock() - began < timeout_s, "it did not happen in time"
        await asyncio.sleep(0.005)
    return clock() - began
