"""The shell around the tables: what is dropped and why, and the socket."""

import asyncio
import socket
import struct
import time
from collections.abc import Callable, Hashable
from typing import Any, cast

import pytest

from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.unit.transceiver.harness import ENDPOINT, RELAY, VIP, FakeSocket, World
from transceiver.counts import Counts
from transceiver.framing import PlainFraming
from transceiver.media_socket import open_socket
from transceiver.mux import BATCH_S, Mux

CLIENT: Address = ("198.51.100.7", 40000)


def stun(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("!HHI12s", kind, len(body), 0x2112A442, b"t" * 12) + body


def username(text: bytes) -> bytes:
    return struct.pack("!HH", 6, len(text)) + text + bytes(-len(text) % 4)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        pytest.param(stun(1, username(b"A" * 24 + b":abcd")), "unknown_ufrag", id="foreign_token"),
        pytest.param(stun(1), "no_username", id="bare_request"),
        pytest.param(stun(1, b"\0\6\0\xff"), "truncated", id="attribute_past_end"),
        pytest.param(stun(1, username(b"A" * 24)), "bad_username", id="no_colon"),
        pytest.param(stun(0x101), "unknown_transaction", id="unasked_response"),
        pytest.param(stun(0x111), "unknown_transaction", id="unasked_error"),
        pytest.param(stun(0x011), "not_a_check", id="indication"),
        pytest.param(b"\0\1", "not_a_check", id="cut_stun"),
        pytest.param(b"\x16\xfe\xfd" + bytes(40), "unknown_path", id="dtls"),
        pytest.param(b"\x80\x6f" + bytes(40), "unknown_path", id="srtp"),
        pytest.param(b"\x80\xc8" + bytes(40), "unknown_path", id="srtcp"),
        pytest.param(b"\x80", "unknown_path", id="cut_srtp"),
        pytest.param(b"GET / HTTP/1.1", "unknown_class", id="other"),
    ],
)
def test_drops_are_counted_and_answered_by_nothing(payload: bytes, reason: str) -> None:
    world = World()
    world.up(CLIENT, payload)
    assert world.counts.dropped == {reason: 1}
    assert not world.socket.sent


@pytest.mark.parametrize(
    ("datagram", "source", "reason"),
    [
        pytest.param(
            spp.encode(spp.Header(CLIENT, VIP)) + b"x", CLIENT, "not_a_relay", id="source"
        ),
        pytest.param(b"\0\1\0\0", RELAY, "not_spp", id="no_header"),
    ],
)
def test_framing_faults_are_counted(datagram: bytes, source: Address, reason: str) -> None:
    world = World()
    world.mux.receive(datagram, source, world.now)
    assert world.counts.dropped == {reason: 1}


def test_srtp_that_is_not_authentic_on_an_owned_path() -> None:
    world = World()
    client = world.connected()
    world.up(client.address, b"\x80\x6f" + bytes(40))
    assert world.counts.dropped == {"not_authentic": 1}


def test_plain_connects_and_echoes() -> None:
    world = World(plain=True)
    client = world.connected()
    client.speak()
    world.pump()
    assert len(client.heard) == 1
    assert world.call(client).describe()["vip"] == "203.0.113.10:3478"


def test_a_refused_send_is_counted() -> None:
    class Refusing(FakeSocket):
        def sendto(self, data: bytes, address: Address) -> None:
            raise BlockingIOError

    counts = Counts()
    mux = Mux(Refusing(), PlainFraming(), counts, lambda: 0.0)  # type: ignore[arg-type]
    mux.send(CLIENT, CLIENT, b"x")
    assert counts.dropped == {"send_failed": 1}


class Recorder:
    """A call that owns everything and remembers the datagrams."""

    vips = frozenset({ENDPOINT})

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.turns = 0
        self.crashes = 0
        self.mux: Mux

    def stun(self, payload: bytes, path: Hashable, via: Address, now: float) -> str | None:
        return None

    def dtls(self, payload: bytes, path: Hashable, via: Address, now: float) -> None:
        self.got.append(payload)

    def rtp(self, payload: bytes, path: Hashable, via: Address, now: float) -> bool:
        raise RuntimeError("a fault of ours")

    def lost(self, path: Hashable, now: float) -> None: ...

    def timer(self, now: float) -> None:
        self.turns += 1
        self.mux.plan(self, now + 0.03)

    def crash(self) -> None:
        self.crashes += 1


def test_reads_in_batches_turns_the_wheel_and_survives_faults() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        media = open_socket(("127.0.0.1", 0))
        counts, call = Counts(), Recorder()
        mux = Mux(media, PlainFraming(), counts, loop.time)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.bind(("127.0.0.1", 0))
            mux.attach(call, "ufrag")
            call.mux = mux
            mux.plan(call, loop.time())
            mux.table.proven(client.getsockname(), call)
            sent = [b"\x16%d" % n for n in range(133)]
            for payload in sent:
                client.sendto(payload, media.getsockname())
            client.sendto(b"\x80\x6fcrash", media.getsockname())
            mux.start(loop)
            await asyncio.sleep(0.2)
            assert call.got == sent
            assert call.turns >= 3
            assert call.crashes == 1
            assert counts.dropped == {"internal_error": 1}
            mux.detach(call)
            turns = call.turns
            await asyncio.sleep(0.12)
            assert call.turns == turns
            assert len(mux.table) == 0
        mux.stop()

    asyncio.run(scenario())


class Loop:
    """Keeps what it is asked to call."""

    def __init__(self) -> None:
        self.readable: Callable[[], None] = lambda: None

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        self.readable = callback

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        """Never."""


def test_reading_gives_way_and_tells_how_long_datagrams_wait() -> None:
    clock = iter(n / 1000 for n in range(1000, 2000))  # each look takes 1 ms
    counts, loop = Counts(), Loop()
    media = open_socket(("127.0.0.1", 0))
    mux = Mux(media, PlainFraming(), counts, lambda: next(clock))
    mux.start(cast(Any, loop))
    each = round(BATCH_S * 1000)
    with media, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for _ in range(10 * each):
            client.sendto(b"GET", media.getsockname())
        time.sleep(0.05)
        for batch in range(1, 11):
            loop.readable()
            assert counts.dropped["unknown_class"] == batch * each
        assert counts.lateness.quantile(0.01, 1.0) >= 0.05
        loop.readable()  # finds nothing


class Scripted:
    """A socket with datagrams to read, and a diary; nobody is reached at port 9."""

    def __init__(self, *datagrams: bytes) -> None:
        self.waiting = list(datagrams)
        self.diary: list[bytes] = []

    def fileno(self) -> int:
        return -1

    def recvfrom(self, size: int) -> tuple[bytes, Address]:
        if not self.waiting:
            raise BlockingIOError
        self.diary.append(b"read")
        return self.waiting.pop(0), CLIENT

    def recvmsg(self, size: int, ancillary: int) -> tuple[bytes, list[Any], int, Address]:
        datagram, source = self.recvfrom(size)
        return datagram, [], 0, source

    def sendto(self, datagram: bytes, address: Address) -> None:
        if address[1] == 9:
            raise OSError
        self.diary.append(datagram)


class Answering(Recorder):
    def dtls(self, payload: bytes, path: Hashable, via: Address, now: float) -> None:
        if payload.endswith(b"lost"):
            self.mux.send(path, (CLIENT[0], 9), payload)
        self.mux.send(path, via, payload.upper())
        if payload.endswith(b"bad"):
            raise ValueError


def test_answers_leave_together_when_the_reading_ends() -> None:
    media, counts, loop, call = (
        Scripted(b"\x16a lost", b"\x16bad", b"\x16c"),
        Counts(),
        Loop(),
        Answering(),
    )
    call.mux = mux = Mux(cast(Any, media), PlainFraming(), counts, lambda: 1.0)
    mux.start(cast(Any, loop))
    mux.table.proven(CLIENT, call)
    loop.readable()
    assert media.diary == [*[b"read"] * 3, b"\x16A LOST", b"\x16BAD", b"\x16C"]
    assert counts.dropped == {"send_failed": 1, "internal_error": 1}
    mux.send(CLIENT, CLIENT, b"of a timer")
    assert media.diary.pop() == b"of a timer"
    loop.readable()
    assert len(media.diary) == 6


class Timers:
    """A loop that notes its timers."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.cancelled = 0

    def add_reader(self, *anything: object) -> None: ...

    remove_reader = add_reader

    def call_later(self, delay: float, callback: Callable[[], None]) -> "Timers":
        self.delays.append(round(delay, 1))
        self.ring = callback
        return self

    def cancel(self) -> None:
        self.cancelled += 1


def test_sleeps_until_something_is_due() -> None:
    loop, call = Timers(), Recorder()
    now = 100.0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as media:
        mux = call.mux = Mux(media, PlainFraming(), Counts(), lambda: now)
        mux.start(cast(Any, loop))
        assert loop.delays == []
        mux.plan(call, 105.0)
        mux.plan(Recorder(), 107.0)
        assert loop.delays == [5.0]
        mux.plan(call, 102.0)
        assert (loop.delays, loop.cancelled) == ([5.0, 2.0], 1)
        now = 102.02
        loop.ring()
        assert call.turns == 1
        assert loop.delays[2:] == [0.0]  # the recorder wants another turn in 30 ms
        mux.stop()
        mux.plan(call, 102.03)
        assert len(loop.delays) == 3


def test_a_closed_client_port_does_not_stop_the_socket() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        media = open_socket(("127.0.0.1", 0))
        mux = Mux(media, PlainFraming(), Counts(), loop.time)
        mux.start(loop)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
            gone.bind(("127.0.0.1", 0))
            closed = gone.getsockname()
        for _ in range(3):
            mux.send(closed, closed, b"anybody?")
            await asyncio.sleep(0.01)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(b"GET", media.getsockname())
            await asyncio.sleep(0.05)
        assert mux.counts.dropped["unknown_class"] == 1
        mux.stop()

    asyncio.run(scenario())
