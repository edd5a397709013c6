import os
import socket
import time
from collections.abc import Iterator

import pytest

from relayctl.packet.inbox import BATCH, SO_TIMESTAMPNS, Inbox
from relayctl.wire.address import pack
from tests.unit.relayctl.packet.test_sockets import LOOPBACK, LOOPBACK_6

_PKTINFO = {  # linux/in.h: what asks for the interface
    LOOPBACK: (socket.IPPROTO_IP, 8),
    LOOPBACK_6: (socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO),
}


@pytest.fixture(params=[LOOPBACK, LOOPBACK_6])
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ours(host: str) -> Iterator[socket.socket]:
    with opened(host, asks=True) as sock:
        yield sock


def opened(host: str, asks: bool) -> socket.socket:
    """A socket that may ask for interfaces."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.setsockopt(*_PKTINFO[host], asks)
    return sock


def test_more_than_a_batch_comes_in_order_and_whole(host: str, ours: socket.socket) -> None:
    inbox, v6 = Inbox(), ":" in host
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    sent = [(number % 3, os.urandom(number % 7 * 100)) for number in range(BATCH + 9)]
    with (
        socket.socket(ours.family, ours.type) as one,
        socket.socket(ours.family, ours.type) as other,
    ):
        peers = [one, other, one]
        for peer in (one, other):
            peer.bind((host, 0))
        for at, payload in sent:
            peers[at].sendto(payload, ours.getsockname()[:2])
        senders = [pack(peer.getsockname()[:2]) for peer in peers]
    batches = [inbox.receive(ours.fileno(), v6=v6, interfaces=True) for _ in range(3)]
    assert [len(batch) for batch in batches] == [BATCH, 9, 0]
    found = [datagram for batch in batches for datagram in batch]
    expected = [(payload, senders[at]) for at, payload in sent]
    assert [(each.payload, each.sender) for each in found] == expected
    times = [each.received_at for each in found]
    assert times == sorted(times)
    assert abs(time.time_ns() - times[-1]) < 60e9
    assert {each.interface for each in found} == {socket.if_nametoindex("lo")}


def test_who_asks_for_no_interface_is_told_none(host: str, ours: socket.socket) -> None:
    with socket.socket(ours.family, ours.type) as peer:
        peer.sendto(b"hello", ours.getsockname()[:2])
    [datagram] = Inbox().receive(ours.fileno(), v6=":" in host, interfaces=False)
    assert (datagram.payload, datagram.interface) == (b"hello", 0)


def test_a_socket_that_fails_gives_nothing() -> None:
    assert Inbox().receive(-1, v6=False, interfaces=False) == []


def test_one_inbox_serves_sockets_of_all_kinds_in_turn() -> None:
    inbox, lo = Inbox(), socket.if_nametoindex("lo")
    for host, asks in [(LOOPBACK, False), (LOOPBACK_6, True), (LOOPBACK, True)]:
        with opened(host, asks) as ours, socket.socket(ours.family, ours.type) as peer:
            peer.bind((host, 0))
            peer.sendto(b"hello", ours.getsockname()[:2])
            [found] = inbox.receive(ours.fileno(), v6=":" in host, interfaces=asks)
            assert found.sender == pack(peer.getsockname()[:2])
            assert abs(time.time_ns() - found.received_at) < 60e9
            assert found.interface == (lo if asks else 0)
