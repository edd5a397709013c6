"""Rushes of new calls, from what `Inbox` reads to a real socket on loopback."""

import socket
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_network

import pytest

from relayctl.flow import NEW_LIFE, Flow, FlowKey
from relayctl.packet.actions import FromClient
from relayctl.packet.inbox import Datagram
from relayctl.packet.outlets import Outlets
from relayctl.packet.rush import Rush
from relayctl.packet.sockets import PacketSocket
from relayctl.packet.upkeep import Upkeep
from relayctl.packet.view import PacketView
from relayctl.reason import Reason
from relayctl.routes import Hop, Route, Routes
from relayctl.wire import spp
from relayctl.wire.address import pack
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packet.test_process import local_config, udp_socket
from tests.unit.relayctl.packet.test_sockets import LOOPBACK
from tests.unit.relayctl.packets import DTLS, KEY, binding_request, token

NOW, STAMP = 5_000_000_000_000, 100
CLIENTS = [("198.51.100.7", 4000 + n) for n in range(4)]
KEYS = [FlowKey(client, 1) for client in CLIENTS]
ROUTES = Routes([Route(ip_network("0.0.0.0/0"), (Hop(1, "10.3.0.1"),))])


class Fixture:
    def __init__(self, endpoint: socket.socket, capacity: int = 16) -> None:
        self.config = local_config().model_copy(update={"datapath": "xdp"})
        self.flows = MemoryDatapath(capacity).flows
        self.counts: Counter[Reason] = Counter()
        self.view = PacketView(self.config, MemoryDatapath(), {1: KEY}, lambda *_: None)
        self.view.take_routes(ROUTES)
        self.view.stamp = STAMP
        self.upkeep = Upkeep(self.view, self.flows)
        self.requests = [
            binding_request(token(endpoint.getsockname(), nonce=n)) for n in range(len(CLIENTS))
        ]

    def rush(self, sockets: list[PacketSocket]) -> list[FromClient]:
        """All clients at once; those that come back."""
        outlets = Outlets(sockets, [], self.view.public)
        rush = Rush(self.view, self.flows, outlets, self.upkeep)
        for client, request in zip(CLIENTS, self.requests, strict=True):
            assert rush.take(Datagram(request, pack(client), 0, 0), 1)
        assert not rush.take(Datagram(DTLS, pack(CLIENTS[0]), 0, 0), 1)
        left = rush.open(self.counts, NOW)
        assert rush.open(self.counts, NOW) == []
        return left


@pytest.fixture
def endpoint() -> Iterator[socket.socket]:
    with udp_socket(LOOPBACK) as sock:
        yield sock


@pytest.fixture
def fixture(endpoint: socket.socket) -> Fixture:
    return Fixture(endpoint)


@pytest.fixture
def inner(fixture: Fixture) -> Iterator[PacketSocket]:
    port = fixture.config.inner_port_base
    sock = PacketSocket((LOOPBACK, port), sport=port)
    yield sock
    sock.close()


def test_all_are_installed_and_sent_on_in_their_order(
    fixture: Fixture, inner: PacketSocket, endpoint: socket.socket
) -> None:
    assert fixture.rush([inner]) == []
    vip = fixture.view.public[1]
    for client, request in zip(CLIENTS, fixture.requests, strict=True):
        assert endpoint.recv(2000) == spp.encode(spp.Header(client, vip)) + request
    assert [key for key, _ in fixture.flows.items()] == KEYS
    assert fixture.counts == {Reason.SLOW_INSTALLED: 4}


def test_nobody_confirmed_them_so_they_end(fixture: Fixture, inner: PacketSocket) -> None:
    fixture.rush([inner])
    fixture.upkeep.beat(STAMP + NEW_LIFE, 0)
    assert len(list(fixture.flows.items())) == 4
    fixture.upkeep.beat(STAMP + NEW_LIFE + 1, 0)
    assert list(fixture.flows.items()) == []
    assert len(fixture.view.tokens) == 0


def test_a_client_that_has_a_flow_keeps_it_and_comes_back(
    fixture: Fixture, inner: PacketSocket
) -> None:
    recovered = Flow((LOOPBACK, 9), 7, 5100)
    fixture.flows.install(KEYS[2], recovered)
    assert fixture.rush([inner]) == [FromClient(fixture.requests[2], KEYS[2], NOW)]
    assert fixture.flows.get(KEYS[2]) == recovered
    assert fixture.counts == {Reason.SLOW_INSTALLED: 3}


def test_who_finds_no_room_comes_back(endpoint: socket.socket) -> None:
    fixture = Fixture(endpoint, capacity=2)
    assert [event.key for event in fixture.rush([])] == KEYS[2:]


def test_what_the_kernel_refuses_to_send_is_counted(fixture: Fixture) -> None:
    assert fixture.rush([]) == []
    assert fixture.counts == {Reason.SLOW_SEND_FAILED: 4}
    assert len(list(fixture.flows.items())) == 4
