import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relayctl.channel import Channel
from relayctl.flow import CONFIRMED, NEW_LIFE, Flow, FlowKey
from relayctl.messages import (
    DeleteFlow,
    ExpireFlow,
    HintsChange,
    Message,
    NexthopKept,
    NexthopReleased,
    OwnAddresses,
    ReloadKeys,
    RerouteFlows,
    RetireNexthop,
    RouteEntry,
    RoutesPart,
)
from relayctl.packet.commands import PacketCommands, read_keys
from relayctl.packet.view import RETIRE_AFTER, PacketView
from relayctl.wire.address import compact, pack
from relayctl.wire.route_token import Key, KeyFileError, render_key
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packets import CLIENT, ENDPOINT, KEY, config

FLOW_KEY = FlowKey(CLIENT, 1)
DEFAULT = RouteEntry("0.0.0.0/0", ((1, "10.3.0.1", 1500),), 0)
INNER = RouteEntry("10.2.0.0/24", ((2, None, 1500),), 0)
ROUTES = RoutesPart(1, 0, 1, (DEFAULT, INNER))


class Fixture:
    def __init__(self, keys_file: Path) -> None:
        self.datapath = MemoryDatapath()
        self.view = PacketView(config(), self.datapath, {1: KEY}, lambda *_: None)
        self.ours, raw = Channel.pair()
        self.control = Channel(raw)
        self.keys_file = keys_file
        self.commands = PacketCommands(self.view, self.datapath, self.ours, keys_file)

    def heard(self) -> list[Message]:
        return list(self.control.receive())


@pytest.fixture
def fixture(tmp_path: Path) -> Iterator[Fixture]:
    found = Fixture(tmp_path / "route.keys")
    yield found
    found.ours.close()
    found.control.close()


def test_routes_count_when_all_parts_are_there(fixture: Fixture) -> None:
    fixture.commands.obey(RoutesPart(1, 0, 2, (DEFAULT,)))
    assert not fixture.view.is_ready
    fixture.commands.obey(RoutesPart(1, 1, 2, (INNER,)))
    assert fixture.view.is_ready
    assert fixture.view.nexthop(compact("198.51.100.7")) == 1
    assert fixture.datapath.nexthops()[1].gateway == "10.3.0.1"


def test_hints(fixture: Fixture) -> None:
    fixture.commands.obey(HintsChange(((9, CLIENT, 1), (8, CLIENT, 1))))
    fixture.commands.obey(HintsChange((), (8,)))
    assert (fixture.view.hints.find(9), fixture.view.hints.find(8)) == (FLOW_KEY, None)


def test_delete_leaves_a_tombstone(fixture: Fixture) -> None:
    fixture.datapath.flows.install(FLOW_KEY, Flow(ENDPOINT, 7, 5107))
    fixture.commands.obey(DeleteFlow(CLIENT, 1))
    assert fixture.datapath.flows.get(FLOW_KEY) is None
    assert fixture.view.tombstones[FLOW_KEY] > time.monotonic_ns()


@pytest.mark.parametrize(("flags", "remains"), [(0, False), (CONFIRMED, True)])
def test_expiry_is_checked_again(fixture: Fixture, flags: int, remains: bool) -> None:
    fixture.view.stamp = 100 + NEW_LIFE + 1
    fixture.datapath.flows.install(FLOW_KEY, Flow(ENDPOINT, 7, 5107, flags=flags, born=100))
    fixture.commands.obey(ExpireFlow(CLIENT, 1))
    assert (fixture.datapath.flows.get(FLOW_KEY) is not None) is remains
    assert fixture.view.tombstones == {}


def test_reroute_gives_a_flow_the_nexthops_of_the_table(fixture: Fixture) -> None:
    fixture.commands.obey(ROUTES)
    flow = Flow(ENDPOINT, 7, 5107, nexthop_in=9, nexthop_out=9, packets_up=3)
    fixture.datapath.flows.install(FLOW_KEY, flow)
    fixture.commands.obey(RerouteFlows(((CLIENT, 1), (CLIENT, 2))))
    found = fixture.datapath.flows.get(FLOW_KEY)
    assert found
    gateways = [
        fixture.datapath.nexthops()[index].gateway
        for index in (found.nexthop_in, found.nexthop_out)
    ]
    assert gateways == [ENDPOINT[0], "10.3.0.1"]
    assert found.packets_up == 3


def test_our_own_addresses_are_no_clients(fixture: Fixture) -> None:
    fixture.commands.obey(OwnAddresses((CLIENT[0], "::1")))
    assert fixture.view.refuses(pack(CLIENT))
    fixture.commands.obey(OwnAddresses(("::1",)))
    assert not fixture.view.refuses(pack(CLIENT))


def test_retire_is_answered(fixture: Fixture) -> None:
    fixture.commands.obey(ROUTES)
    index = fixture.view.nexthop(compact(ENDPOINT[0]))
    assert index
    fixture.commands.obey(RetireNexthop(index))
    fixture.view.stamp += RETIRE_AFTER + 1
    fixture.commands.obey(RetireNexthop(index))
    assert fixture.heard() == [NexthopKept(index), NexthopReleased(index)]


def test_keys_are_read_again_and_bad_ones_change_nothing(fixture: Fixture) -> None:
    fixture.keys_file.write_text(render_key(Key(2, bytes(32))))
    fixture.commands.obey(ReloadKeys())
    assert list(fixture.view.keys) == list(fixture.datapath.keys) == [2]
    fixture.keys_file.write_text("2 nonsense")
    fixture.commands.obey(ReloadKeys())
    assert list(fixture.view.keys) == list(fixture.datapath.keys) == [2]


def test_key_file_faults_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "route.keys"
    with pytest.raises(KeyFileError, match=r"route\.keys.*No such file.*keygen"):
        read_keys(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(KeyFileError, match="no text"):
        read_keys(path)
    path.write_text("1 nonsense")
    with pytest.raises(KeyFileError, match=r"route\.keys': line 1"):
        read_keys(path)
