"""Handshakes over a network that loses, repeats, delays and cuts, in the time of a test."""

import heapq
import itertools
from collections.abc import Callable
from typing import NamedTuple

import pytest
from OpenSSL import SSL

from tests.unit.transceiver.records import (
    fragments,
    messages,
    post_quantum,
    records,
    with_extension,
)
from tests.unit.transceiver.test_dtls import End, Pair, send
from transceiver.dtls import Failure, Identity
from transceiver.flight import DATAGRAM_SIZE

STEP_S = 0.01
TRIP_S = 0.02  # one way
LATE_S = 0.03  # more than the distance of two datagrams, less than our first repetition
SERVER_HELLO = 2


class LargeHello(Identity):
    """A client whose hello takes two datagrams, as one with a post-quantum key share."""

    def _make_context(self) -> SSL.Context:
        context = super()._make_context()
        context.set_alpn_protos([b"x" * 250] * 5)
        return context


LARGE = LargeHello()


class Fault(NamedTuple):
    """What happens to the `n`-th datagram of one direction."""

    up: bool
    n: int
    kind: str  # lost, twice, late

    @property
    def arrivals(self) -> list[float]:
        return {"lost": [], "twice": [TRIP_S, TRIP_S], "late": [TRIP_S + LATE_S]}[self.kind]


class Network:
    """Two ends, a queue of datagrams under way, and a clock."""

    def __init__(self, pair: Pair, faults: tuple[Fault, ...] = ()) -> None:
        self.pair = pair
        self.now = 100.0
        self._faults = {(fault.up, fault.n): fault for fault in faults}
        self._sent = {True: 0, False: 0}
        self._flying: list[tuple[float, int, End, bytes]] = []
        self._order = itertools.count()

    def run(self, seconds: float, until: Callable[[], bool]) -> float:
        began = self.now
        while not until() and self.now - began < seconds:
            self.now += STEP_S
            for end in (self.pair.server, self.pair.client):
                end.dtls.timer(self.now)
            self._carry(self.pair.client, self.pair.server)
            self._carry(self.pair.server, self.pair.client)
            while self._flying and self._flying[0][0] <= self.now:
                _, _, end, datagram = heapq.heappop(self._flying)
                end.dtls.receive(datagram, self.now)
        return self.now - began

    def _carry(self, source: End, target: End) -> None:
        up = source is self.pair.client
        datagrams, source.outbox = source.outbox, []
        for datagram in datagrams:
            self._sent[up] += 1
            fault = self._faults.get((up, self._sent[up]))
            for delay in [TRIP_S] if fault is None else fault.arrivals:
                heapq.heappush(
                    self._flying, (self.now + delay, next(self._order), target, datagram)
                )


def shake(faults: tuple[Fault, ...] = (), identity: Identity | None = None) -> float:
    """How long the handshake took; afterwards both directions work."""
    pair = Pair() if identity is None else Pair(identity=identity)
    network = Network(pair.begin(100.0), faults)
    took = network.run(3.0, lambda: pair.connected)
    assert pair.connected, faults
    send(pair.client, b"up")
    send(pair.server, b"down")
    network.run(1.0, lambda: bool(pair.server.received and pair.client.received))
    assert (pair.server.received, pair.client.received) == ([b"up"], [b"down"])
    assert (pair.server.connects, pair.client.connects) == (1, 1)
    assert not pair.server.ends
    assert max(pair.server.sizes + pair.client.sizes) <= DATAGRAM_SIZE
    return took


EVERY = [
    Fault(up, n, kind) for up in (True, False) for n in (1, 2) for kind in ("lost", "twice", "late")
]
UNDISTURBED_S = 4 * TRIP_S + 5 * STEP_S


def test_two_round_trips_when_nothing_happens() -> None:
    assert shake() <= UNDISTURBED_S


@pytest.mark.parametrize("fault", EVERY, ids=str)
def test_one_fault_costs_little(fault: Fault) -> None:
    cost = {"lost": 0.1 + 2 * TRIP_S, "twice": 0.0, "late": LATE_S}[fault.kind]
    assert shake((fault,)) <= UNDISTURBED_S + cost + STEP_S


def test_any_two_faults_are_overcome() -> None:
    for faults in itertools.combinations(EVERY, 2):
        assert shake(faults) <= UNDISTURBED_S + 0.4


def test_everything_repeated_is_one_handshake() -> None:
    shake(tuple(Fault(up, n, "twice") for up in (True, False) for n in range(1, 9)))


@pytest.mark.parametrize(
    "fault",
    [Fault(True, n, kind) for n in (1, 2, 3) for kind in ("lost", "twice", "late")],
    ids=str,
)
def test_a_hello_of_two_datagrams_with_a_fault(fault: Fault) -> None:
    """`late` on the first one: they arrive in the wrong order."""
    assert shake((fault,), LARGE) <= UNDISTURBED_S + 0.1 + 2 * TRIP_S + STEP_S


def test_the_large_hello_is_one() -> None:
    first, second = Pair(identity=LARGE).begin().client.outbox
    assert DATAGRAM_SIZE - 20 < len(first) <= DATAGRAM_SIZE
    assert messages([first, second]) == [1, 1]


def hello() -> bytes:
    """The ClientHello message of a client of ours."""
    return next(records(Pair().begin().client.outbox[0])).body


def answered(*datagrams: bytes) -> bool:
    """Whether a server answers the hello in `datagrams` with its flight."""
    server = Pair().begin().server
    for datagram in datagrams:
        server.dtls.receive(datagram, 0.0)
    assert not server.ends
    return messages(server.outbox)[:1] == [SERVER_HELLO]


def test_a_post_quantum_hello_in_either_order() -> None:
    message = post_quantum(hello())
    assert 1300 < len(message) < 1800
    first, second = fragments(message, 1150)
    assert answered(first, second)
    assert answered(second, first)
    assert answered(second, second, first, first)
    assert not answered(first)
    assert not answered(second)


def test_a_hello_that_is_cut_otherwise_when_it_is_repeated() -> None:
    message = post_quantum(hello())
    small = fragments(message, 256)
    other = fragments(message, 700, number=len(small))
    assert not answered(*small[:2], *small[3:])
    assert answered(*small[:2], *small[3:], *other[:2])
    assert answered(*reversed(small))


def test_dtls_1_0_is_refused() -> None:
    message = bytearray(hello())
    assert message[12:14] == b"\xfe\xfd"
    message[12:14] = b"\xfe\xff"
    server = Pair().begin().server
    server.dtls.receive(fragments(bytes(message), 1200)[0], 0.0)
    assert server.ends == [Failure.HANDSHAKE]
    (alert,) = records(server.outbox[-1])
    assert (alert.kind, alert.body) == (21, b"\x02\x46")  # fatal, protocol_version


def test_dtls_1_3_falls_back() -> None:
    """A client that offers 1.3 and 1.2 gets 1.2."""
    versions = b"\x04\xfe\xfc\xfe\xfd"
    (whole,) = fragments(with_extension(hello(), 43, versions), 1200)
    assert answered(whole)
