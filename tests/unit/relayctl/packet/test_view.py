from ipaddress import ip_network

import pytest

from relayctl.datapath.base import Nexthop
from relayctl.flow import Flow, FlowKey
from relayctl.packet.view import MAX_TOMBSTONES, RETIRE_AFTER, TOMBSTONE_NS, PacketView
from relayctl.routes import Hop, NexthopIndex, Route, Routes, Way
from relayctl.wire.address import compact, pack
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packets import (
    CLIENT,
    CLIENT_6,
    ENDPOINT,
    ENDPOINT_6,
    KEY,
    VIP,
    VIP_6,
    config,
)

ROUTES = Routes(
    [
        Route(ip_network("0.0.0.0/0"), (Hop(1, "10.3.0.1"),)),
        Route(ip_network("10.2.0.0/24"), (Hop(2, None, 1400),)),
        Route(ip_network("192.0.2.0/24"), (Hop(0, "10.4.0.1"),)),
    ]
)


class Fixture:
    def __init__(self, datapath: str = "xdp") -> None:
        self.datapath = MemoryDatapath()
        self.told: list[tuple[int, Way]] = []
        self.view = PacketView(
            config(datapath=datapath),
            self.datapath,
            {1: KEY},
            lambda index, way: self.told.append((index, way)),
        )


@pytest.fixture
def fixture() -> Fixture:
    found = Fixture()
    found.view.take_routes(ROUTES)
    return found


def test_decisions_wait_for_routes_where_the_kernel_forwards() -> None:
    view = Fixture().view
    assert not view.is_ready
    assert view.nexthop(compact(CLIENT[0])) is None
    view.take_routes(Routes())
    assert view.is_ready
    assert Fixture("socket").view.is_ready


def test_a_new_nexthop_is_reserved_written_and_told_once(fixture: Fixture) -> None:
    index = fixture.view.nexthop(compact(ENDPOINT[0]))
    assert index
    assert fixture.view.nexthop(compact(ENDPOINT[0])) == index
    assert fixture.told[1:] == [(index, Way(2, "10.2.0.2", 1400))]
    assert fixture.datapath.nexthops()[index] == Nexthop(2, "10.2.0.2", mtu=1400)


def test_a_gateway_has_its_nexthop_before_the_first_call_and_keeps_it(fixture: Fixture) -> None:
    ((index, way),) = fixture.told
    assert fixture.view.nexthop(compact("198.51.100.7")) == index
    assert fixture.datapath.nexthops() == {index: Nexthop(way.port, way.gateway, mtu=way.mtu)}
    fixture.view.stamp += 2 * RETIRE_AFTER
    assert not fixture.view.retire(index)


def test_hosts_behind_one_gateway_share_a_nexthop(fixture: Fixture) -> None:
    assert fixture.view.nexthop(compact("198.51.100.7")) == fixture.view.nexthop(compact("8.8.8.8"))


def test_an_interface_without_the_program_has_no_nexthop(fixture: Fixture) -> None:
    assert fixture.view.nexthop(compact("192.0.2.1")) == 0
    assert len(fixture.told) == 1  # the gateway


def test_the_socket_datapath_needs_no_nexthops() -> None:
    assert Fixture("socket").view.nexthop(compact("198.51.100.7")) == 0


def test_a_nexthop_retires_only_when_it_is_not_used(fixture: Fixture) -> None:
    fixture.view.stamp = 100
    index = fixture.view.nexthop(compact(ENDPOINT[0]))
    assert index
    fixture.view.stamp += RETIRE_AFTER
    assert not fixture.view.retire(index)
    fixture.view.stamp += 1
    assert fixture.view.retire(index)
    assert index not in fixture.datapath.nexthops()


def test_a_nexthop_in_use_is_touched_in_every_unit(fixture: Fixture) -> None:
    host = compact(ENDPOINT[0])
    fixture.view.stamp = 100
    index = fixture.view.nexthop(host)
    assert index
    fixture.view.stamp += RETIRE_AFTER
    assert fixture.view.nexthop(host) == index
    fixture.view.stamp += 1
    assert not fixture.view.retire(index)


def test_another_route_counts_at_once(fixture: Fixture) -> None:
    host = compact(CLIENT[0])
    before = fixture.view.nexthop(host)
    fixture.view.take_routes(Routes([Route(ip_network("0.0.0.0/0"), (Hop(1, "10.3.0.2"),))]))
    after = fixture.view.nexthop(host)
    assert after
    assert fixture.datapath.nexthops()[after].gateway == "10.3.0.2"
    assert after != before


def test_every_flow_that_finds_the_table_full_is_counted(
    fixture: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NexthopIndex, "reserve", lambda *_: 0)
    assert [fixture.view.nexthop(compact(ENDPOINT[0])) for _ in range(2)] == [0, 0]
    assert fixture.view.nexthop_full == 2


def test_tombstones_end_and_are_limited(fixture: Fixture) -> None:
    view = fixture.view
    keys = [FlowKey(("198.51.100.7", port % 65536), port // 65536) for port in range(65540)]
    for key in keys:
        view.bury(key, 0)
    assert len(view.tombstones) == MAX_TOMBSTONES
    assert keys[-1] in view.tombstones
    assert keys[0] not in view.tombstones
    view.bury(keys[0], TOMBSTONE_NS)
    assert view.tombstones == {keys[0]: 2 * TOMBSTONE_NS}


def test_what_a_decision_asks(fixture: Fixture) -> None:
    view = fixture.view
    flow = Flow(ENDPOINT, 7, 5107)
    fixture.datapath.flows.install(FlowKey(CLIENT, 1), flow)
    assert view.flow(FlowKey(CLIENT, 1)) == flow
    assert (view.vip(VIP), view.vip(CLIENT)) == (1, None)
    assert view.public == {1: VIP}
    assert view.inner_port(pack(CLIENT)) in range(5100, 5116)
    assert (view.owner(ENDPOINT), view.owner(("10.2.0.1", 5100))) == (7, None)
    assert view.refuses(pack(VIP))
    assert not view.refuses(pack(CLIENT))


def test_in_transparent_mode_there_is_no_inner_port() -> None:
    transparent = config(inner="transparent")
    view = PacketView(transparent, MemoryDatapath(), {1: KEY}, lambda *_: None)
    assert view.transparent
    assert view.inner_port(pack(CLIENT)) == 0


def test_the_flows_of_a_token(fixture: Fixture) -> None:
    key = FlowKey(CLIENT, 1)
    fixture.view.tokens.add(b"IWwJ+/iU", key)
    assert fixture.view.crowd(b"IWwJ+/iU") == []
    flow = Flow(ENDPOINT, 7, 5107, b"IWwJ+/iU")
    fixture.view.tokens.add(b"IWwJ+/iU", key)
    fixture.datapath.flows.install(key, flow)
    assert fixture.view.crowd(b"IWwJ+/iU") == [(key, flow)]


def test_both_families_have_nexthops_and_owners() -> None:
    six = config(
        inner_address=["10.2.0.1", "fd00:2::1"],
        vip=[{"id": 2, "public": "[2001:db8:10::10]:3478"}],
        cluster=[{"id": 9, "prefix": "fd00:2::/96", "allow": ["fd00:2::/112"]}],
    )
    datapath = MemoryDatapath()
    view = PacketView(six, datapath, {1: KEY}, lambda *_: None)
    view.take_routes(
        Routes(
            [
                Route(ip_network("::/0"), (Hop(1, "fe80::1"),)),
                Route(ip_network("fd00:2::/64"), (Hop(2, None, 1400),)),
            ]
        )
    )
    index = view.nexthop(compact(ENDPOINT_6[0]))
    assert index
    assert datapath.nexthops()[index] == Nexthop(2, "fd00:2::2", mtu=1400)
    assert view.nexthop(compact(CLIENT_6[0])) not in (None, 0, index)
    assert view.owner(ENDPOINT_6) == 9
    assert view.owner(("fd00:2::1", 5100)) is None
    assert view.refuses(pack(("fd00:2::1", 9)))
    assert view.vip(VIP_6) == 2
