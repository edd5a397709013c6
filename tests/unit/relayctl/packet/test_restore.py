"""Flows of Redis: what is installed, what is refused, and that it is what a token would give."""

import ipaddress
from typing import Any

import pytest

from relayctl.cached_flow import RECORD_KEY, encode
from relayctl.flow import (
    NEW_LIFE,
    TO_PEER,
    Flow,
    FlowKey,
    State,
    peer_place,
    slot_of,
    units,
)
from relayctl.packet.restore import Restore
from relayctl.packet.token_flows import MAX_NEW
from relayctl.packet.upkeep import Upkeep
from relayctl.packet.view import PacketView
from relayctl.routes import Hop, Route, Routes
from relayctl.wire import spp
from relayctl.wire.address import Address, pack
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packet.events import NOW
from tests.unit.relayctl.packets import CLIENT, CLIENT_6, ENDPOINT, ENDPOINT_6, KEY, config

TOKEN = b"IWwJ+/iU"
ROUTES = Routes(
    [
        Route(ipaddress.ip_network("198.51.100.0/24"), (Hop(1, "10.3.0.1"),)),
        Route(ipaddress.ip_network("2001:db8::/32"), (Hop(1, "fe80::1"),)),
        Route(ipaddress.ip_network("10.2.0.0/24"), (Hop(2, None, 1400),)),
        Route(ipaddress.ip_network("fd00:2::/64"), (Hop(2, None, 1400),)),
    ]
)


def record(
    client: Address = CLIENT,
    vip: int = 1,
    endpoint: Address = ENDPOINT,
    cluster: int = 7,
    token: bytes = TOKEN,
    ssrc: int = 0x01020304,
) -> bytes:
    key = FlowKey(client, vip)
    flags = TO_PEER if slot_of(endpoint) else 0
    value = encode(Flow(endpoint, cluster, 0, token, ssrc=ssrc, flags=flags))
    return RECORD_KEY.pack(len(key), key) + value


class Fixture:
    def __init__(self, capacity: int = 1024, **flags: Any) -> None:
        settings = config(
            **{
                "inner_address": ["10.2.0.1", "fd00:2::1"],
                "vip": [
                    {"id": 1, "public": "203.0.113.10:3478"},
                    {"id": 2, "public": "[2001:db8:10::10]:3478"},
                ],
                "cluster": [
                    {"id": 7, "allow": ["10.2.0.0/24"]},
                    {"id": 9, "prefix": "fd00:2::/96", "allow": ["fd00:2::/112"]},
                ],
            }
            | flags
        )
        self.datapath = MemoryDatapath(capacity)
        self.datapath.flows.prefixes = {9: ipaddress.ip_address("fd00:2::").packed[:12]}
        self.view = PacketView(settings, self.datapath, {1: KEY}, lambda *_: None)
        self.view.take_routes(ROUTES)
        self.view.stamp = units(NOW)
        self.upkeep = Upkeep(self.view, self.datapath.flows)
        self.restore = Restore(self.view, self.datapath.flows, self.upkeep)

    def take(self, *records: bytes) -> list[bytes]:
        return self.restore.take(b"".join(records), NOW)

    def flow(self, client: Address = CLIENT, vip: int = 1) -> Flow | None:
        return self.datapath.flows.get(FlowKey(client, vip))


@pytest.fixture
def fixture() -> Fixture:
    return Fixture()


@pytest.mark.parametrize(
    ("client", "vip", "endpoint", "cluster"),
    [
        (CLIENT, 1, ENDPOINT, 7),
        (CLIENT_6, 2, ENDPOINT_6, 9),
        (CLIENT, 1, ENDPOINT_6, 9),
        (CLIENT_6, 2, ENDPOINT, 7),
    ],
)
def test_a_flow_is_new_and_says_what_its_token_would(
    fixture: Fixture, client: Address, vip: int, endpoint: Address, cluster: int
) -> None:
    assert fixture.take(record(client, vip, endpoint, cluster)) == [FlowKey(client, vip)]
    flow = fixture.flow(client, vip)
    assert flow == Flow(
        endpoint=endpoint,
        cluster=cluster,
        sport=spp.inner_port(pack(client)),
        token=TOKEN,
        nexthop_in=fixture.view.nexthop(pack(endpoint)[:-2]) or -1,
        nexthop_out=fixture.view.nexthop(pack(client)[:-2]) or -1,
        ssrc=0x01020304,
        born=units(NOW),
    )
    assert flow.state is State.NEW
    assert [key for key, _ in fixture.view.crowd(TOKEN)] == [FlowKey(client, vip)]
    assert (fixture.restore.installed, fixture.restore.refused) == (1, 0)


PEERS: dict[str, Any] = {
    "peer": [
        {
            "id": id,
            "address": f"10.2.1.{id}",
            "admin": f"10.2.1.{id}:9100",
            "vips": [{"id": 5, "public": "203.0.113.77:3478"}],
        }
        for id in (2, 3)
    ],
    "cluster": [
        {"id": 7, "allow": ["10.2.0.0/24"]},
        {"id": 8, "allow": ["10.7.0.0/24"], "via": [2, 3]},
    ],
}


def test_a_flow_by_a_peer_goes_by_the_one_that_its_token_would_choose() -> None:
    fixture = Fixture(**PEERS)
    clients = [("198.51.100.7", 1000 + n) for n in range(20)]
    fixture.take(
        *(
            record(client, endpoint=peer_place(9, 1), cluster=8, token=b"%08d" % n)
            for n, client in enumerate(clients)
        )
    )
    slots = set()
    for client in clients:
        flow = fixture.flow(client)
        assert flow
        assert flow.slot == fixture.view.peers.choose(8, pack(client), 1)
        assert flow.endpoint[1] == flow.sport == spp.inner_port(pack(client))
        assert (flow.nexthop_in, flow.cluster) == (0, 8)
        slots.add(flow.slot)
    assert slots == {2, 3}


@pytest.mark.parametrize(
    ("bad", "live"),
    [
        pytest.param(record(endpoint=peer_place(9, 1), cluster=8), (), id="no_peer_lives"),
        pytest.param(record(endpoint=peer_place(9, 1), cluster=7), (2, 3), id="reached_directly"),
        pytest.param(record(endpoint=("10.7.0.2", 5000), cluster=8), (2, 3), id="only_by_peers"),
        pytest.param(record(vip=5), (2, 3), id="vip_of_a_peer"),
    ],
)
def test_refused_with_peers(bad: bytes, live: tuple[int, ...]) -> None:
    fixture = Fixture(**PEERS)
    fixture.view.take_live_peers(live)
    assert fixture.take(bad) == []
    assert fixture.restore.refused == 1


def test_nobody_confirms_it_and_it_goes(fixture: Fixture) -> None:
    fixture.take(record())
    fixture.upkeep.beat(units(NOW) + NEW_LIFE + 1, NOW)
    assert fixture.flow() is None
    assert fixture.view.crowd(TOKEN) == []


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(record(cluster=8), id="unknown_cluster"),
        pytest.param(record(cluster=9), id="endpoint_of_another_cluster"),
        pytest.param(record(endpoint=("10.3.0.2", 5000)), id="endpoint_not_allowed"),
        pytest.param(record(endpoint=("10.2.0.2", 1023)), id="port_not_allowed"),
        pytest.param(record(endpoint=("10.2.0.1", 5100)), id="our_own_address"),
        pytest.param(record(client=("127.0.0.1", 4)), id="client_refused"),
        pytest.param(record(client=("10.2.0.9", 4000)), id="client_inside"),
        pytest.param(record(client=("8.8.8.8", 4000)), id="no_route"),
        pytest.param(record(vip=3), id="unknown_vip"),
        pytest.param(record(vip=2), id="vip_of_the_other_family"),
        pytest.param(record()[:25] + b"\2" + record()[26:], id="another_version"),
    ],
)
def test_refused(fixture: Fixture, bad: bytes) -> None:
    good = record(("198.51.100.8", 1), token=b"b" * 8)
    assert fixture.take(bad, good) == [FlowKey(("198.51.100.8", 1), 1)]
    assert len(list(fixture.datapath.flows.items())) == 1
    assert (fixture.restore.installed, fixture.restore.refused) == (1, 1)
    assert fixture.view.crowd(TOKEN) == []


@pytest.mark.parametrize("token", [TOKEN, b"other---"])
def test_never_over_an_existing_flow(fixture: Fixture, token: bytes) -> None:
    there = Flow(("10.2.0.3", 5000), 7, 5107, TOKEN, packets_up=4)
    fixture.datapath.flows.install(FlowKey(CLIENT, 1), there)
    fixture.upkeep.installed(FlowKey(CLIENT, 1), there)
    assert fixture.take(record(token=token)) == []
    assert fixture.flow() == there
    assert (fixture.restore.installed, fixture.restore.refused) == (0, 0)


def test_a_deleted_flow_stays_away_for_a_while(fixture: Fixture) -> None:
    fixture.view.bury(FlowKey(CLIENT, 1), NOW)
    assert fixture.take(record()) == []
    assert fixture.restore.refused == 1
    assert fixture.restore.take(record(), NOW + 31_000_000_000) == [FlowKey(CLIENT, 1)]


def test_one_token_has_no_more_than_its_share(fixture: Fixture) -> None:
    clients = [("198.51.100.7", 1000 + n) for n in range(MAX_NEW + 3)]
    assert len(fixture.take(*(record(client) for client in clients))) == len(clients)
    left = {key for key, _ in fixture.datapath.flows.items()}
    assert len(left) == MAX_NEW
    assert left == {key for key, _ in fixture.view.crowd(TOKEN)}
    assert fixture.upkeep.displaced == 3


def test_flows_without_a_known_token_do_not_share_one(fixture: Fixture) -> None:
    clients = [("198.51.100.7", 1000 + n) for n in range(40)]
    fixture.take(*(record(client, token=bytes(8)) for client in clients))
    assert len(list(fixture.datapath.flows.items())) == 40


def test_a_full_table_takes_what_it_can() -> None:
    fixture = Fixture(capacity=1)
    assert len(fixture.take(record(), record(("198.51.100.8", 1), token=b"b" * 8))) == 1
    assert fixture.take(record(("198.51.100.9", 1), token=TOKEN)) == []


def test_nothing_in_nothing_out(fixture: Fixture) -> None:
    assert fixture.take() == []
