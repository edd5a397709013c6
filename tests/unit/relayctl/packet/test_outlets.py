import os
import socket
from collections.abc import Iterator

import pytest

from relayctl.flow import FlowKey
from relayctl.packet.actions import SendInner, SendOuter, SendTransparent
from relayctl.packet.outlets import Outlets
from relayctl.packet.sockets import PacketSocket, RawSocket
from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.unit.relayctl.packet.test_sockets import free_port
from tests.unit.relayctl.packets import CLIENT, VIP

HOSTS = ("127.0.0.1", "::1")


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def peer(host: str) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((host, 0))
        sock.settimeout(2)
        yield sock


@pytest.fixture
def sockets() -> Iterator[list[PacketSocket]]:
    """One VIP and the same inner port of each family."""
    port = free_port()
    found = [
        *(PacketSocket((host, free_port(host)), vip=id) for id, host in enumerate(HOSTS, 1)),
        *(PacketSocket((host, port), sport=5100) for host in HOSTS),
    ]
    yield found
    for sock in found:
        sock.close()


def address_of(peer: socket.socket) -> Address:
    host, port, *_ = peer.getsockname()
    return host, port


def test_inner_packets_leave_by_the_socket_of_their_port_and_family(
    sockets: list[PacketSocket], peer: socket.socket
) -> None:
    outlets = Outlets(sockets, [], {1: VIP})
    assert outlets.send(SendInner(address_of(peer), 5100, FlowKey(CLIENT, 1), b"hello"))
    assert peer.recv(100) == spp.encode(spp.Header(CLIENT, VIP)) + b"hello"


def test_a_port_that_we_do_not_have_any_more(
    sockets: list[PacketSocket], peer: socket.socket
) -> None:
    outlets = Outlets(sockets, [], {1: VIP})
    assert not outlets.send(SendInner(address_of(peer), 5101, FlowKey(CLIENT, 1), b"hello"))


def test_outer_packets_leave_by_the_vip(
    sockets: list[PacketSocket], peer: socket.socket, host: str
) -> None:
    outlets = Outlets(sockets, [], {})
    vip = HOSTS.index(host) + 1
    assert outlets.send(SendOuter(FlowKey(address_of(peer), vip), b"hello"))
    payload, sender = peer.recvfrom(100)
    assert (payload, sender[0]) == (b"hello", host)


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets need root")
def test_transparent_packets_leave_in_the_name_of_the_client(
    peer: socket.socket, host: str
) -> None:
    raw = [RawSocket(False), RawSocket(True)]
    client = ("198.51.100.7" if host == HOSTS[0] else "2001:db8:7::7", 40000)
    outlets = Outlets([], raw, {})
    assert outlets.send(SendTransparent(address_of(peer), FlowKey(client, 1), b"hello"))
    payload, sender = peer.recvfrom(100)
    assert (payload, sender[:2]) == (b"hello", client)
    stranger = FlowKey(("2001:db8::1", 9), 1)
    assert not outlets.send(SendTransparent(("198.51.100.9", 9), stranger, b""))
    for sock in raw:
        sock.close()
