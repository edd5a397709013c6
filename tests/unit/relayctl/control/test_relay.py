import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

import pytest

from relayctl.control.peers import PeerWatch
from relayctl.control.relay import Relay, stamp
from relayctl.control.sweeper import Sweeper
from relayctl.control.watchdog import FRESH_S
from relayctl.datapath.base import Nexthop
from relayctl.datapath.spec import Interface, Role
from relayctl.flow import CONFIRMED, Flow, FlowKey, State
from relayctl.messages import DeleteFlow, Heartbeat, Message
from relayctl.reason import Reason
from relayctl.routes import Hop, Route, Routes
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packets import CLIENT, ENDPOINT, config

LO = 1  # index of an interface that every host has
CARRIER = 77  # index of what carries the program for it, as for a VLAN device
ROUTES = Routes([Route(IPv4Network("10.2.0.0/24"), (Hop(1, None),))])
VALID = Nexthop(1, "10.2.0.2", valid=True)


class FakePacketSide:
    def __init__(self, datapath: MemoryDatapath) -> None:
        self.heartbeat: Heartbeat | None = Heartbeat(
            5, 20, 4, 0, 3, 6, (1,), {}, displaced=3, takeovers=2
        )
        self.silence_s = 0.2
        self.takes_messages = True
        self.pid = 4711
        self.dropped = 1
        self._datapath = datapath

    def silent_s(self) -> float:
        return self.silence_s

    def send(self, message: Message) -> bool:
        if self.takes_messages and isinstance(message, DeleteFlow):
            self._datapath.flows.delete(FlowKey(message.client, message.vip))
        return self.takes_messages


class FakeNexthops:
    def __init__(self) -> None:
        self.routes = ROUTES
        self.entries: Mapping[int, Nexthop] = {1: VALID}
        self.faults: list[str] = []

    def failed(self) -> int:
        return 1

    def lost(self) -> list[str]:
        return self.faults


@dataclass
class FakeKernel:
    nexthops: FakeNexthops
    interfaces: tuple[Interface, ...] = (Interface("lo", LO, 1, Role.BOTH, CARRIER, (7, 0)),)


class Fixture:
    """A relay of two VIPs whose only interface is the inner one, `lo`."""

    def __init__(self, datapath: str = "xdp") -> None:
        vips = [{"id": n, "public": f"203.0.113.{n}:3478"} for n in (1, 2)]
        flags: dict[str, Any] = {"datapath": datapath, "vip": vips, "trust_l2": True}
        self.config = config(**flags, interface=[{"name": "lo", "role": "both"}])
        self.datapath = MemoryDatapath()
        self.packet = FakePacketSide(self.datapath)
        self.nexthops = FakeNexthops()
        self.attached = [CARRIER]
        self.is_loading = False
        self.sweeper = Sweeper(self.datapath, self.packet.send, stamp, lambda: None, lambda _: None)
        in_kernel = datapath == "xdp"
        self.relay = Relay(
            self.config,
            self.datapath,
            self.packet,
            self.sweeper,
            FakeKernel(self.nexthops) if in_kernel else None,
            lambda: self.attached,
            lambda: 2,
            lambda: self.is_loading,
            PeerWatch(self.config.peers, self.packet.send),
            None,
        )

    def install(self, vip: int = 1, flags: int = CONFIRMED) -> None:
        flow = Flow(ENDPOINT, 7, 5107, nexthop_in=1, nexthop_out=1, flags=flags, born=stamp())
        self.datapath.flows.install(FlowKey(CLIENT, vip), flow)


@pytest.fixture
def fixture() -> Fixture:
    return Fixture()


def test_not_ready_while_flows_are_loaded(fixture: Fixture) -> None:
    fixture.is_loading = True
    assert "loading flows from redis" in fixture.relay.faults()


def test_ready(fixture: Fixture) -> None:
    assert fixture.relay.faults() == []
    assert Fixture("socket").relay.faults() == []


def test_not_ready(fixture: Fixture) -> None:
    fixture.relay.draining = True
    fixture.packet.silence_s = FRESH_S + 1
    fixture.packet.heartbeat = None
    fixture.attached = []
    fixture.nexthops.entries = {}
    fixture.nexthops.routes = Routes()
    fixture.nexthops.faults = ["interface eth0 is gone"]
    assert fixture.relay.faults() == [
        "draining",
        "the packet process is silent",
        "no route key",
        "the program is not attached",
        "no way to any transceiver",
        "interface eth0 is gone",
    ]


def test_the_carrier_has_to_carry_the_program(fixture: Fixture) -> None:
    fixture.attached = [LO]
    assert fixture.relay.faults() == ["the program is not attached"]


@pytest.mark.parametrize("which", ["an_entry", "a_route"])
def test_a_way_inside_is_enough(fixture: Fixture, which: str) -> None:
    if which == "an_entry":
        fixture.nexthops.routes = Routes()
    else:
        fixture.nexthops.entries = {}
    assert fixture.relay.faults() == []


def test_status(fixture: Fixture) -> None:
    fixture.install()
    fixture.datapath.write_slow_reasons({Reason.FORWARD: 3, Reason.RETURN: 0})
    asyncio.run(fixture.sweeper.sweep())
    status = fixture.relay.status()
    assert status["flows"] == {"new": 0, "confirmed": 1, "max": 1024}
    assert status["reasons"] == {"forward": 3}
    assert (status["datapath"], status["ready"], status["not_ready"]) == ("xdp-native", True, [])
    assert status["packet_process_pid"] == 4711
    assert status["vips"][0] == {"id": 1, "public": "203.0.113.1:3478", "local": "203.0.113.1:3478"}
    assert status["interfaces"] == [{"name": "lo", "role": "both"}]


def test_flows_say_who_carries_them(fixture: Fixture) -> None:
    fixture.install()
    [record] = fixture.relay.flows()
    assert (record["client"], record["vip"]) == ("198.51.100.7:40000", "203.0.113.1:3478")
    assert (record["path"], record["reason"]) == ("kernel", None)
    assert record["packets"] == {"up": 0, "down": 0}
    fixture.nexthops.entries = {}
    [record] = fixture.relay.flows()
    assert (record["path"], record["reason"]) == ("user", "no_nexthop_in")


@pytest.mark.parametrize(
    ("vip", "found"),
    [(None, 1), ("1", 1), ("203.0.113.1:3478", 1), ("2", 2), ("203.0.113.9:1", None)],
)
def test_a_flow_by_client_and_vip(fixture: Fixture, vip: str | None, found: int | None) -> None:
    fixture.install(1)
    fixture.install(2)
    record = fixture.relay.flow(CLIENT, vip)
    assert (record and record["vip_id"]) == found


def test_delete_ends_the_flows_of_a_client(fixture: Fixture) -> None:
    fixture.install(1)
    fixture.install(2)
    assert asyncio.run(fixture.relay.delete(CLIENT, "2"))
    assert fixture.datapath.flows.get(FlowKey(CLIENT, 1))
    assert asyncio.run(fixture.relay.delete(CLIENT, None))
    assert asyncio.run(fixture.relay.delete(CLIENT, None)) is False
    fixture.install()
    fixture.packet.takes_messages = False
    assert asyncio.run(fixture.relay.delete(CLIENT, None)) is None


def test_nexthops_carry_the_name_of_their_interface(fixture: Fixture) -> None:
    [record] = fixture.relay.nexthops()
    assert (record["index"], record["interface"], record["valid"]) == (1, "lo", True)


def test_snapshot(fixture: Fixture) -> None:
    fixture.install(flags=0)
    asyncio.run(fixture.sweeper.sweep())
    snapshot = fixture.relay.snapshot()
    assert snapshot.flows == {(4, State.NEW): 1, (4, State.CONFIRMED): 0}
    assert snapshot.flows_max == {4: 262144, 6: 65536}
    assert 50e6 < snapshot.map_memory < 80e6
    assert (snapshot.displaced, snapshot.takeovers, snapshot.replacements) == (3, 2, 2)
    assert 0 < snapshot.sweep_s < 1
    assert 0 <= snapshot.sweep_age_s < 1
    assert snapshot.nexthops == {"valid": 1, "unresolved": 0}
    assert (snapshot.received, snapshot.socket_drops, snapshot.hints) == (20, 4, 3)
    assert snapshot.channel_drops == {"control": 1, "packet": 0}
    assert (snapshot.ready, snapshot.nexthops_failed, snapshot.nexthop_full) == (True, 1, 6)


def test_the_stamp_is_that_of_the_program() -> None:
    assert abs(stamp() - (time.monotonic_ns() >> 30)) <= 1
