"""The fault hop on the wire: what it passes, loses, delays and translates."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.lab import topology
from tests.lab.frame import Kind
from tests.lab.hop_control import HopError
from tests.lab.impairment import DOWN, UP, Rule
from tests.lab.topology import Lab

PORT = 3478
RTP = b"\x80\x6f" + bytes(10)
STUN = b"\x00\x01" + bytes(18)


@pytest.fixture(scope="module")
def fault_lab(lab_prefix: str) -> Iterator[Lab]:
    with Lab(f"{lab_prefix}h-", hop="fault") as lab:
        yield lab


@pytest.fixture
def lab(fault_lab: Lab) -> Lab:
    fault_lab.hop.clear()
    fault_lab.hop.counters(reset=True)
    return fault_lab


@pytest.fixture
def vip(lab: Lab) -> Iterator[socket.socket]:
    with lab.relay.udp(topology.VIP, PORT, timeout_s=0.5) as sock:
        yield sock


@pytest.fixture
def client(lab: Lab) -> Iterator[socket.socket]:
    with lab.client.udp(topology.CLIENT, timeout_s=0.5) as sock:
        sock.connect((topology.VIP, PORT))
        yield sock


def received(sock: socket.socket, settle_s: float = 0.2) -> list[bytes]:
    """Everything that comes until nothing came for `settle_s`."""
    sock.settimeout(settle_s)
    found = []
    while True:
        try:
            found.append(sock.recv(2000))
        except TimeoutError:
            return found


def test_passes_both_ways_and_counts(lab: Lab, vip: socket.socket, client: socket.socket) -> None:
    client.send(RTP)
    data, source = vip.recvfrom(100)
    assert (data, source) == (RTP, client.getsockname())
    for _ in range(3):
        vip.sendto(STUN, source)
    assert received(client) == [STUN] * 3
    counters = lab.hop.counters()
    assert counters[UP]["rtp"] == {"seen": 1, "sent": 1}
    assert counters[DOWN]["stun"] == {"seen": 3, "sent": 3}


def test_full_frames_pass(vip: socket.socket, client: socket.socket) -> None:
    client.send(bytes(1472))
    assert len(vip.recv(2000)) == 1472


def test_tcp_passes(lab: Lab) -> None:
    """A stream fast enough to be merged and split by offloads, were they left on."""
    listener = lab.signaling.socket(socket.AF_INET, socket.SOCK_STREAM)
    sender = lab.client.socket(socket.AF_INET, socket.SOCK_STREAM)
    body = bytes(range(256)) * 2000
    with listener, sender:
        listener.bind((topology.SIGNALING, 8080))
        listener.listen()
        sender.settimeout(5)
        sender.connect((topology.SIGNALING, 8080))
        taker, _ = listener.accept()
        taker.settimeout(5)
        with taker, taker.makefile("rb") as stream:
            feeder = threading.Thread(target=sender.sendall, args=(body,))
            feeder.start()
            assert stream.read(len(body)) == body
            feeder.join()


def test_loses_the_share_it_was_told_and_the_same_ones_again(
    lab: Lab, vip: socket.socket, client: socket.socket
) -> None:
    runs = []
    for _ in range(2):
        lab.hop.set_rules(Rule(direction=UP, kinds=frozenset({Kind.RTP}), drop=0.3))
        for number in range(200):
            client.send(RTP + bytes([number]))
            client.send(STUN)
        got = received(vip)
        assert got.count(STUN) == 200
        runs.append([data[-1] for data in got if data != STUN])
    assert 115 < len(runs[0]) < 165
    assert runs[0] == runs[1]
    assert lab.hop.counters()[UP]["rtp"] == {
        "seen": 400,
        "sent": 2 * len(runs[0]),
        "dropped": 400 - 2 * len(runs[0]),
    }


def test_loses_the_nth_dtls_datagram(lab: Lab, vip: socket.socket, client: socket.socket) -> None:
    lab.hop.set_rules(Rule(direction=UP, kinds=frozenset({Kind.DTLS}), nth=(2,), drop=1))
    for number in range(3):
        client.send(b"\x16" + bytes([number]))
    assert received(vip) == [b"\x16\x00", b"\x16\x02"]


def test_delays(lab: Lab, vip: socket.socket, client: socket.socket) -> None:
    lab.hop.set_rules(Rule(delay_s=0.05))
    started = time.monotonic()
    client.send(RTP)
    _, source = vip.recvfrom(100)
    assert 0.05 <= time.monotonic() - started < 0.08
    vip.sendto(RTP, source)
    client.recv(100)
    assert 0.1 <= time.monotonic() - started < 0.14


def test_reorders_and_duplicates(lab: Lab, vip: socket.socket, client: socket.socket) -> None:
    lab.hop.set_rules(Rule(nth=(1,), reorder=1), Rule(nth=(2,), duplicate=1))
    for number in range(3):
        client.send(RTP + bytes([number]))
    assert [data[-1] for data in received(vip)] == [1, 1, 2, 0]


def test_a_moved_client_is_another_client(
    lab: Lab, vip: socket.socket, client: socket.socket
) -> None:
    client.send(RTP)
    _, before = vip.recvfrom(100)
    assert lab.hop.move(client.getsockname()) == 1
    client.send(RTP)
    _, after = vip.recvfrom(100)  # a wrong checksum would not arrive
    assert after[0] == before[0] == topology.CLIENT
    assert after[1] != before[1]

    vip.sendto(b"old", before)
    vip.sendto(b"new", after)
    assert received(client) == [b"new"]
    assert lab.hop.count(DOWN, "udp", "unmapped") == 1


def test_longest_gap(lab: Lab, vip: socket.socket, client: socket.socket) -> None:
    client.send(RTP)
    received(vip, 0.02)
    lab.hop.counters(reset=True)  # the pause between two tests is a gap as well
    for pause in (0.02, 0.15, 0.02):
        time.sleep(pause)
        client.send(RTP)
    received(vip, 0.05)
    assert 140 < lab.hop.counters()["rtp_gap_ms"][UP] < 500


def test_a_gap_that_lasts_outlives_a_reset(
    lab: Lab, vip: socket.socket, client: socket.socket
) -> None:
    client.send(RTP)
    time.sleep(0.1)
    lab.hop.counters(reset=True)
    time.sleep(0.1)
    client.send(RTP)
    received(vip, 0.05)
    assert 190 < lab.hop.counters()["rtp_gap_ms"][UP] < 300


def test_nonsense_is_refused(lab: Lab) -> None:
    with pytest.raises(HopError, match="no address"):
        lab.hop._ask({"op": "move", "client": "10.1.0.2"})
    assert lab.hop.counters()
