"""Flows of Redis in real maps: what is there stays as it is, down to its counters."""

import contextlib
from collections.abc import Iterator

import pytest

from relayctl.datapath.bpf_map import Map
from relayctl.datapath.maps import flow_shapes
from relayctl.datapath.xdp import PinnedFlows
from relayctl.flow import Flow, FlowKey
from relayctl.packet.restore import Restore
from relayctl.packet.upkeep import Upkeep
from tests.unit.relayctl.packet.events import NOW
from tests.unit.relayctl.packet.test_restore import Fixture, record
from tests.unit.relayctl.packets import CLIENT_6, ENDPOINT

ROOM = 512


@pytest.fixture
def flows() -> Iterator[PinnedFlows]:
    with contextlib.ExitStack() as stack:
        maps = [stack.enter_context(Map.create(shape)) for shape in flow_shapes(ROOM, ROOM)]
        yield PinnedFlows(maps[0], maps[1], {})


@pytest.fixture
def restore(flows: PinnedFlows) -> Restore:
    view = Fixture(datapath="xdp").view
    return Restore(view, flows, Upkeep(view, flows))


def client(number: int) -> tuple[str, int]:
    return "198.51.100.7", 1024 + number


def test_many_at_once_beside_one_that_lives(flows: PinnedFlows, restore: Restore) -> None:
    living = Flow(ENDPOINT, 7, 5107, b"living--", packets_up=17, seen_up=3)
    flows.install(FlowKey(client(5), 1), living)
    records = [record(client(n), token=b"%08d" % n) for n in range(300)]
    installed = restore.take(b"".join([*records, record(CLIENT_6, 2, token=b"six-----")]), NOW)
    assert len(installed) == restore.installed == 300
    assert flows.get(FlowKey(client(5), 1)) == living
    assert sum(1 for _ in flows.items()) == 301
    there = flows.get(FlowKey(client(6), 1))
    assert there is not None
    assert (there.endpoint, there.token, there.packets_up) == (ENDPOINT, b"00000006", 0)


def test_a_full_map_keeps_what_it_has(flows: PinnedFlows, restore: Restore) -> None:
    records = [record(client(n), token=b"%08d" % n) for n in range(ROOM + 100)]
    assert len(restore.take(b"".join(records), NOW)) == ROOM
    assert restore.refused == 0
