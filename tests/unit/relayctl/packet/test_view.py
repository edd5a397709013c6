from ipaddress import IPv4Network

import pytest

from relayctl.datapath.base import Nexthop
from relayctl.flow import Flow, FlowKey
from relayctl.packet.view import MAX_TOMBSTONES, RETIRE_AFTER, TOMBSTONE_NS, PacketView
from relayctl.routes import Hop, Route, Routes, Way
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packets import CLIENT, ENDPOINT, KEY, VIP, config

ROUTES = Routes(
    [
        Route(IPv4Network("0.0.0.0/0"), (Hop(1, "10.3.0.1"),)),
        Route(IPv4Network("10.2.0.0/24"), (Hop(2, None, 1400),)),
        Route(IPv4Network("192.0.2.0/24"), (Hop(0, "10.4.0.1"),)),
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
    assert view.nexthop(CLIENT[0]) is None
    view.take_routes(Routes())
    assert view.is_ready
    assert Fixture("socket").view.is_ready


def test_a_new_nexthop_is_reserved_written_and_told_once(fixture: Fixture) -> None:
    index = fixture.view.nexthop(ENDPOINT[0])
    assert index
    assert fixture.view.nexthop(ENDPOINT[0]) == index
    assert fixture.told == [(index, Way(2, "10.2.0.2", 1400))]
    assert fixture.datapath.nexthops() == {index: Nexthop(2, "10.2.0.2", "10.2.0.1", mtu=1400)}


def test_hosts_behind_one_gateway_share_a_nexthop(fixture: Fixture) -> None:
    assert fixture.view.nexthop("198.51.100.7") == fixture.view.nexthop("8.8.8.8")


def test_an_interface_without_the_program_has_no_nexthop(fixture: Fixture) -> None:
    assert fixture.view.nexthop("192.0.2.1") == 0
    assert fixture.told == []


def test_the_socket_datapath_needs_no_nexthops() -> None:
    assert Fixture("socket").view.nexthop("198.51.100.7") == 0


def test_a_nexthop_retires_only_when_it_is_not_used(fixture: Fixture) -> None:
    fixture.view.stamp = 100
    index = fixture.view.nexthop(ENDPOINT[0])
    assert index
    fixture.view.stamp += RETIRE_AFTER
    assert not fixture.view.retire(index)
    fixture.view.stamp += 1
    assert fixture.view.retire(index)
    assert fixture.datapath.nexthops() == {}


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
    assert view.inner_port(CLIENT) in range(5100, 5116)
    assert (view.owner(ENDPOINT), view.owner(("10.2.0.1", 5100))) == (7, None)
    assert view.refuses(VIP)
    assert not view.refuses(CLIENT)
