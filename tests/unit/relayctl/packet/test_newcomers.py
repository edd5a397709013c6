"""Plain first packets: `Newcomers` says of them what `decide` says."""

import base64
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.flow import FlowKey, pack_flow, units
from relayctl.packet.actions import Count, FromClient, Install, SendInner
from relayctl.packet.decide import decide
from relayctl.packet.newcomers import Newcomers
from relayctl.packet.view import PacketView
from relayctl.reason import Reason
from relayctl.routes import Hop, Route, Routes
from relayctl.wire import spp
from relayctl.wire.address import Address, pack
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packet.events import NOW
from tests.unit.relayctl.packets import (
    CLIENT,
    CLIENT_6,
    DTLS,
    ENDPOINT,
    ENDPOINT_6,
    KEY,
    OTHER_ENDPOINT,
    VIP,
    VIP_6,
    binding_request,
    binding_response,
    config,
    token,
)

ROUTES = [
    Route(ip_network("::/1"), (Hop(1, "fe80::1"),)),
    Route(ip_network("8.0.0.0/8"), (Hop(1, "10.3.0.1"),)),
    Route(ip_network("192.0.0.0/3"), (Hop(1, "10.3.0.7"),)),
    Route(ip_network("10.2.0.0/24"), (Hop(2, None, 1400),)),
    Route(ip_network("fd00:2::/64"), (Hop(2, None, 1400),)),
    Route(ip_network("172.16.0.0/12"), (Hop(0, "10.4.0.1"),)),
]


def a_view(routes: list[Route] | None = None) -> PacketView:
    settings = config(
        datapath="xdp",
        inner_address=["10.2.0.1", "fd00:2::1"],
        vip=[
            {"id": 1, "public": "203.0.113.10:3478"},
            {"id": 2, "public": "[2001:db8:10::10]:3478"},
        ],
        cluster=[
            {"id": 7, "allow": ["10.2.0.0/24"]},
            {"id": 9, "prefix": "fd00:2::/96", "allow": ["fd00:2::/112"]},
        ],
    )
    view = PacketView(settings, MemoryDatapath(), {1: KEY}, lambda *_: None)
    view.take_routes(Routes(ROUTES if routes is None else routes))
    view.stamp = units(NOW)
    return view


def forged(good: bytes) -> bytes:
    raw = bytearray(base64.b64decode(good))
    raw[9] ^= 1
    return base64.b64encode(raw)


ENDPOINTS = [(ENDPOINT, 7), (OTHER_ENDPOINT, 7), (ENDPOINT_6, 9)]
TOKENS = [token(endpoint, cluster=cluster) for endpoint, cluster in ENDPOINTS]
ODD_TOKENS = [
    *(token(cluster=8), token(("10.2.0.1", 5100)), token(("10.3.0.1", 5000)), forged(TOKENS[0])),
    *(token(("10.2.0.2", 1023)), b"x" * 24, b"=" * 24, TOKENS[0][:-1]),
]
REQUESTS = st.sampled_from(TOKENS + ODD_TOKENS).map(binding_request)
PAYLOADS = st.one_of(
    REQUESTS,
    REQUESTS.map(lambda request: request[:-4]),
    REQUESTS.map(lambda request: request + bytes(4)),
    st.sampled_from(
        [b"", DTLS, binding_response(bytes(12)), binding_request(TOKENS[0], kind=0x11)]
    ),
    st.binary(max_size=60),
)
CLIENTS = st.tuples(
    st.sampled_from(
        [CLIENT[0], "8.8.8.8", "172.16.0.9", "10.2.0.9", "127.0.0.1", "203.0.113.10", "168.0.0.1"]
    ),
    st.integers(0, 65535),
)
CLIENTS_6 = st.tuples(
    st.sampled_from([CLIENT_6[0], "fe80::1", "fd00:2::7", "c000::1", "::ffff:198.51.100.7"]),
    st.integers(0, 65535),
)
SENDERS = st.tuples(CLIENTS, st.just(1)) | st.tuples(CLIENTS_6, st.just(2))


@pytest.mark.parametrize(("client", "vip"), [(CLIENT, 1), (CLIENT_6, 2)])
@pytest.mark.parametrize("local_ufrag", TOKENS + ODD_TOKENS)
def test_both_say_the_same_of_a_token(local_ufrag: bytes, client: Address, vip: int) -> None:
    compare(binding_request(local_ufrag), client, vip)


@given(PAYLOADS, SENDERS)
def test_both_say_the_same_of_anything(payload: bytes, sender: tuple[Address, int]) -> None:
    compare(payload, *sender)


def compare(payload: bytes, client: Address, vip: int) -> None:
    view = a_view()
    key = FlowKey(client, vip)
    *actions, count = decide(FromClient(payload, key, NOW), view, NOW)
    opening = Newcomers(view).judge(payload, pack(client), vip)
    if opening is None:
        assert count != Count(Reason.SLOW_INSTALLED)
        return
    install, send = actions
    assert isinstance(install, Install)
    assert isinstance(send, SendInner)
    assert count == Count(Reason.SLOW_INSTALLED)
    assert (opening.key, opening.flow) == (install.key, pack_flow(install.flow))
    assert opening.token == install.flow.token
    assert (opening.endpoint, opening.sport) == (send.endpoint, send.sport)
    header = spp.encode(spp.Header(client, {1: VIP, 2: VIP_6}[vip]))
    assert opening.datagram == header + send.payload
    assert opening.payload == payload


def test_a_token_that_a_flow_may_bear_is_not_plain() -> None:
    view = a_view()
    newcomers, request = Newcomers(view), binding_request(TOKENS[0])
    assert newcomers.judge(request, pack(CLIENT), 1)
    assert newcomers.judge(request, pack(("198.51.100.8", 9)), 1) is None
    assert newcomers.judge(binding_request(TOKENS[1]), pack(("198.51.100.8", 9)), 1)


@pytest.mark.parametrize("missing", [ROUTES[2], ROUTES[3]], ids=["client", "endpoint"])
def test_without_a_route_it_is_not_plain_and_its_token_not_borne(missing: Route) -> None:
    view = a_view([route for route in ROUTES if route is not missing])
    assert Newcomers(view).judge(binding_request(TOKENS[0]), pack(CLIENT), 1) is None
    assert TOKENS[0][:8] not in view.tokens
