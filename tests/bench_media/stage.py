"""A transceiver in this process, and the relay in front of it.

Real sockets and the loop of production; the relay is ours, so a datagram can bear any client's
address. The clients are those of the unit tests: ICE, DTLS and SRTP without sockets of their own.
"""

import asyncio
import contextlib
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import uvloop

from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.figures.measurement import Findings
from tests.unit.transceiver.harness import VIP, Client
from tests.unit.transceiver.live import KEYS, free_port
from transceiver.call import Call
from transceiver.config import TransceiverConfig
from transceiver.dialects.choice import DialectName
from transceiver.server import Transceiver

HOST = "198.51.100.7"  # of the clients
PATIENCE_S = 5.0
STEP_S = 0.001
BUFFER = 4 << 20  # bytes of the relay's socket
APPLICATION = (
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\n"
    "a=sctp-port:5000\r\na=max-message-size:262144\r\n"
)


class Stage:
    def __init__(self, transceiver: Transceiver, endpoint: Address) -> None:
        self.transceiver = transceiver
        self.calls = transceiver.calls
        self.clients: dict[Address, Client] = {}
        self._endpoint = endpoint
        self._relay = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._relay.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self._relay.setblocking(False)
        self._relay.bind(("127.0.0.1", 0))
        asyncio.get_running_loop().add_reader(self._relay, self._readable)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._relay)
        self._relay.close()

    def client(self, port: int, **fields: Any) -> Client:
        """A client with an answered offer, of audio and a data channel."""
        client = self.clients[HOST, port] = Client((HOST, port), **fields)
        client.call_id, answer = self.calls.create(offer(client), (VIP,), DialectName.PLAIN)
        client.take_answer(answer)
        return client

    def call(self, client: Client) -> Call:
        return self.calls.find(client.call_id)

    def owner(self, address: Address) -> Call | None:
        """Whom everything but STUN from `address` goes to."""
        owner = self.transceiver.mux.table.owner(spp.encode(spp.Header(address, VIP)))
        assert owner is None or isinstance(owner, Call)
        return owner

    def up(self, address: Address, payload: bytes) -> None:
        """Bring a payload, as if it came from `address`."""
        header = spp.encode(spp.Header(address, VIP))
        self._relay.sendto(header + payload, self._endpoint)

    def flush(self, client: Client) -> None:
        """Send what a client wants to send."""
        payloads, client.outbox[:] = client.outbox.copy(), []
        for payload in payloads:
            self.up(client.address, payload)

    async def connect(self, client: Client) -> None:
        """ICE and DTLS. Raises `TimeoutError`."""
        await self.prove(client)
        client.hello(time.monotonic())
        self.flush(client)
        await until(lambda: client.connected and self.call(client).state == "connected")

    async def prove(self, client: Client) -> None:
        """ICE. Raises `TimeoutError`."""
        client.check()
        self.flush(client)
        await until(lambda: self.owner(client.address) is self.call(client))

    async def hears(self, client: Client) -> bool:
        """Whether what `client` says comes back within patience."""
        before = len(client.heard)
        client.speak()
        self.flush(client)
        with contextlib.suppress(TimeoutError):
            await until(lambda: len(client.heard) > before, 1.0)
        return len(client.heard) == before + 1

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                header, payload = spp.split(self._relay.recv(2048))
                client = self.clients.get(spp.decode(header).client)
                if client is not None:
                    client.receive(payload, time.monotonic())
                    self.flush(client)


def offer(client: Client) -> str:
    """Of audio and a data channel."""
    return client.offer().replace("BUNDLE 0", "BUNDLE 0 1") + APPLICATION


async def until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait for `condition`. Raises `TimeoutError`."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        await asyncio.sleep(STEP_S)


@contextlib.asynccontextmanager
async def staged(**settings: Any) -> AsyncIterator[Stage]:
    """A stage with a transceiver of `settings`; both are gone afterwards."""
    endpoint = ("127.0.0.1", free_port())
    values: dict[str, Any] = {
        "listen": "{}:{}".format(*endpoint),
        "inner": "spp",
        "relay_networks": ["127.0.0.0/8"],
        "cluster": 7,
        "mint": 1,
        "capacity": 5000,
        "max_lateness_ms": 10_000,
        "echo": {"mode": "opus"},
    }
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "route.keys"
        keys.write_text(KEYS)
        transceiver = Transceiver(TransceiverConfig(**(values | settings), keys_file=keys))
    await transceiver.start()
    stage = Stage(transceiver, endpoint)
    try:
        yield stage
    finally:
        stage.close()
        await transceiver.stop()


def play(scene: Callable[[], Awaitable[Findings]]) -> Findings:
    """Run a scene on the loop of production."""

    async def main() -> Findings:
        return await scene()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())
