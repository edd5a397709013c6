import os
import socket
import time
from collections.abc import Iterator

import pytest

from relayctl.packet import sockets as packet_sockets
from relayctl.packet.inbox import Datagram, Inbox
from relayctl.packet.sockets import PacketSocket, SocketError, open_sockets
from relayctl.wire.address import Address, render, unpack
from tests.unit.relayctl.packets import config

LOOPBACK = "127.0.0.1"


LOOPBACK_6 = "::1"


def free_port(host: str = LOOPBACK) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def received(sock: PacketSocket) -> list[Datagram]:
    return sock.receive(Inbox())


@pytest.fixture
def local() -> Address:
    return LOOPBACK, free_port()


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((LOOPBACK, 0))
        sock.settimeout(2)
        yield sock


def test_a_datagram_comes_with_its_sender_time_and_interface(
    local: Address, peer: socket.socket
) -> None:
    sock = PacketSocket(local, vip=1, interfaces=True)
    assert received(sock) == []
    payload = os.urandom(65000)
    peer.sendto(payload, local)
    [datagram] = received(sock)
    assert (datagram.payload, unpack(datagram.sender)) == (payload, peer.getsockname())
    assert abs(time.time_ns() - datagram.received_at) < 1e9
    assert datagram.interface == socket.if_nametoindex("lo")
    sock.close()


def test_send(local: Address, peer: socket.socket) -> None:
    sock = PacketSocket(local, sport=local[1])
    assert sock.send(b"hello", peer.getsockname())
    assert peer.recvfrom(100) == (b"hello", local)
    assert not sock.send(b"hello", ("255.255.255.255", 9))  # broadcast is not permitted
    sock.close()


def test_what_a_full_socket_drops_is_counted(
    local: Address, peer: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_sockets, "RECEIVE_BUFFER", 4096)
    sock = PacketSocket(local, vip=1)
    for _ in range(100):
        peer.sendto(bytes(1000), local)
    count = 0
    while batch := received(sock):
        count += len(batch)
    assert 0 < count < 100
    assert count + sock.drops() == 100
    sock.close()


def test_an_address_that_is_not_ours() -> None:
    with pytest.raises(SocketError, match=r"192\.0\.2\.1:3478.*`ip address add 192\.0\.2\.1/32"):
        PacketSocket(("192.0.2.1", 3478), vip=1)


def test_a_taken_port_is_tried_for_a_while(
    peer: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_sockets, "BIND_PATIENCE_S", 0.1)
    began = time.monotonic()
    with pytest.raises(SocketError, match="another process has it"):
        PacketSocket(peer.getsockname(), vip=1)
    assert time.monotonic() - began >= 0.1


def test_ipv6_datagrams_come_with_a_canonical_sender_and_their_interface() -> None:
    local = LOOPBACK_6, free_port(LOOPBACK_6)
    sock = PacketSocket(local, vip=1, interfaces=True)
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as peer:
        peer.bind((LOOPBACK_6, 0))
        peer.settimeout(2)
        sender = peer.getsockname()[:2]
        peer.sendto(b"hello", local)
        [datagram] = received(sock)
        assert (datagram.payload, unpack(datagram.sender)) == (b"hello", sender)
        assert abs(time.time_ns() - datagram.received_at) < 1e9
        assert datagram.interface == socket.if_nametoindex("lo")
        assert sock.send(b"back", unpack(datagram.sender))
        assert peer.recvfrom(100)[0] == b"back"
    sock.close()


def test_a_socket_takes_one_family_only() -> None:
    port = free_port()
    any_6 = PacketSocket(("::", port), vip=2)
    any_4 = PacketSocket(("0.0.0.0", port), vip=1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.sendto(b"hello", (LOOPBACK, port))
    assert received(any_6) == []
    assert received(any_4)
    any_4.close()
    any_6.close()


def test_an_ipv6_address_that_is_not_ours() -> None:
    with pytest.raises(SocketError, match=r"\[2001:db8::1\]:3478.*add 2001:db8::1/128"):
        PacketSocket(("2001:db8::1", 3478), vip=1)


def test_a_heir_reads_what_was_sent_to_its_predecessor(local: Address, peer: socket.socket) -> None:
    relay = config(
        datapath="socket",
        interface=[],
        inner_address=[LOOPBACK],
        inner_port_base=free_port(),
        inner_ports=2,
        dev_local=True,
        vip=[{"id": 9, "public": render(local)}],
    )
    opened = open_sockets(relay)
    places = [local, *((LOOPBACK, port) for port in relay.inner_port_range)]
    for place in places:
        peer.sendto(b"hello", place)
    heirs = open_sockets(relay, [os.dup(sock.fileno()) for sock in opened])
    for sock in opened:
        sock.close()
    assert [(sock.vip, sock.sport) for sock in heirs] == [
        (9, 0),
        *((0, port) for port in relay.inner_port_range),
    ]
    for sock, place in zip(heirs, places, strict=True):
        assert [datagram.payload for datagram in received(sock)] == [b"hello"]
        assert sock.send(b"back", peer.getsockname())
        assert peer.recvfrom(100) == (b"back", place)
        sock.close()
