"""Flows outlive a change of layout or of table size, and nobody else's pins are touched."""

import json
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from relayctl.datapath import maps, pins, xdp
from relayctl.datapath.base import DatapathError, Nexthop
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import possible_cpus
from relayctl.datapath.maps import MapShape, MapType
from relayctl.datapath.spec import Interface, Role, Spec
from relayctl.flow import CONFIRMED, Flow, FlowKey, pack_flow
from relayctl.reason import Reason
from tests.kernel import rig
from tests.kernel.conftest import veth

KEYS = [FlowKey((f"192.0.2.{host}", 40000), 1) for host in range(1, 21)]
FLOW = Flow(rig.ENDPOINT, 7, rig.SPORT, b"abcdefgh", 1, 2, seen_up=50, packets_up=10, born=40)
LATER = FLOW._replace(flags=CONFIRMED, seen_up=60, seen_down=61, packets_up=12, bytes_up=99)
ONLY = bytes(4)

LAYOUT_1 = (
    MapShape("flows_v4", MapType.HASH, 8, 72, 1024),
    MapShape("nexthops", MapType.ARRAY, 4, 28, 4096),
    MapShape("egress", MapType.DEVMAP, 4, 4, 64),
    MapShape("reasons", MapType.PERCPU_ARRAY, 4, 8, 128),
    MapShape("slow_reasons", MapType.ARRAY, 4, 8, 128),
    MapShape("control", MapType.ARRAY, 4, 4, 1),
    MapShape("budgets", MapType.PERCPU_ARRAY, 4, 8, 64),
    MapShape("meta", MapType.ARRAY, 4, 4096, 1),
)


@pytest.fixture
def spec(bpffs: Path, namespace: None) -> Iterator[Spec]:
    veth("moved0")
    one_family = {"inner_addresses": (rig.INNER,), "clusters": rig.spec(bpffs, "x").clusters[:1]}
    interfaces = (Interface("moved0", rig.ifindex("moved0"), 1, Role.BOTH),)
    made = rig.spec(bpffs, "migrated", interfaces=interfaces, **one_family)
    yield made
    xdp.unload(made.instance, made.bpffs)
    subprocess.run(["ip", "link", "del", "moved0"], check=True)


@pytest.fixture
def layout_1(spec: Spec) -> Path:
    """What the first version pinned, with the 20 flows of KEYS and one nexthop."""
    old = spec.pins.with_name("v1")
    old.mkdir(parents=True)
    for shape in LAYOUT_1:
        with Map.create(shape) as fresh:
            fresh.pin(old / shape.name)
    known = maps.meta(spec)
    content = {"layout": 1, "vips": known["vips"], "inner": known["inner"], "structures": []}
    write(old / "meta", ONLY, json.dumps(content).encode().ljust(4096, b"\0"))
    for key in KEYS:
        write(old / "flows_v4", key, pack_flow(FLOW))
    addresses = bytes([10, 2, 0, 1]), bytes([10, 2, 0, 254])  # source, gateway
    entry = struct.pack("=BBHHH6s6s4s4s", 1, 2, 1450, 0, 0, *rig.ENDPOINT_MACS, *addresses)
    write(old / "nexthops", (1).to_bytes(4, "little"), entry)
    write(old / "slow_reasons", (64).to_bytes(4, "little"), (7).to_bytes(8, "little"))
    per_cpu = b"".join((cpu + 1).to_bytes(8, "little") for cpu in range(possible_cpus()))
    write(old / "reasons", (1).to_bytes(4, "little"), per_cpu)
    return old


def write(path: Path, key: bytes, value: bytes) -> None:
    with Map.open(path) as pinned:
        pinned.update(key, value)


def start(spec: Spec) -> int | None:
    """Everything of a load but the program; None if the maps were adopted."""
    pins.check(spec)
    return None if pins.adopt(spec) else pins.make(spec)


def attached(spec: Spec) -> xdp.XdpDatapath:
    """Everything of an attachment but the program."""
    pins.settle(spec.pins)
    return xdp.XdpDatapath.open(spec.pins)


def test_an_older_layout_is_carried_over_whole(spec: Spec, layout_1: Path) -> None:
    loaded = xdp.load(spec)
    assert (loaded.adopted, loaded.migrated) == (False, 20)
    assert layout_1.exists()  # its program still forwards with it
    datapath = xdp.XdpDatapath.open(spec.pins)
    datapath.attach(spec.interfaces)
    assert dict(datapath.flows.items()) == dict.fromkeys(KEYS, FLOW)
    nexthop = Nexthop(2, "10.2.0.254", True, 1450, *rig.ENDPOINT_MACS)
    assert datapath.nexthops() == {1: nexthop}
    cpus = possible_cpus()
    assert datapath.reasons()[Reason.SLOW_INSTALLED] == 7
    assert datapath.reasons()[Reason.FORWARD] == cpus * (cpus + 1) / 2
    assert not layout_1.exists()
    datapath.close()


def test_what_the_old_program_did_meanwhile_is_not_lost(spec: Spec, layout_1: Path) -> None:
    start(spec)
    write(layout_1 / "flows_v4", KEYS[0], pack_flow(LATER))
    write(spec.pins / "flows_v4", KEYS[1], pack_flow(LATER))  # the new one's own work
    datapath = attached(spec)
    flows = dict(datapath.flows.items())
    assert (flows[KEYS[0]], flows[KEYS[1]], flows[KEYS[2]]) == (LATER, LATER, FLOW)
    datapath.close()


def test_a_flow_that_ended_meanwhile_does_not_come_back(spec: Spec, layout_1: Path) -> None:
    start(spec)
    with Map.open(spec.pins / "flows_v4") as flows:
        assert flows.delete(KEYS[0])
    datapath = attached(spec)
    assert datapath.flows.get(KEYS[0]) is None
    datapath.close()


def test_another_meaning_is_refused_and_nothing_changes(spec: Spec, layout_1: Path) -> None:
    other = replace(spec, inner_port_base=5200)
    with pytest.raises(DatapathError, match=r"inner: pinned .*5100.* wanted .*5200"):
        start(other)
    assert pins.adoption_faults(other)
    assert not spec.pins.exists()
    assert pins.adoption_faults(spec) == []
    assert start(spec) == 20


def test_a_newer_version_is_left_alone(spec: Spec, layout_1: Path) -> None:
    newer = spec.pins.with_name("v99")
    layout_1.rename(newer)
    with pytest.raises(DatapathError, match="v99 was made by a newer version"):
        start(spec)
    assert pins.adoption_faults(spec)
    assert not spec.pins.exists()


@pytest.mark.parametrize("max_flows", [512, 4096])
def test_a_table_is_resized_with_its_flows(spec: Spec, layout_1: Path, max_flows: int) -> None:
    start(spec)
    attached(spec).close()
    resized = replace(spec, max_flows=max_flows)
    assert pins.adoption_faults(resized) == []
    assert start(resized) == 20
    datapath = attached(resized)
    assert datapath.flows.capacity == max_flows + spec.max_flows_v6
    assert len(list(datapath.flows.items())) == 20
    assert [path.name for path in spec.pins.parent.glob("v*")] == [spec.pins.name]
    datapath.close()
    assert start(resized) is None


def test_a_table_never_shrinks_below_its_flows(spec: Spec, layout_1: Path) -> None:
    start(spec)
    attached(spec).close()
    small = replace(spec, max_flows=16)
    with pytest.raises(DatapathError, match="max_flows = 16: 20 flows are alive; choose more"):
        start(small)
    assert start(spec) is None


def test_an_abandoned_start_leaves_the_old_pins(spec: Spec, layout_1: Path) -> None:
    start(spec)
    attached(spec).close()
    start(replace(spec, max_flows=2048))
    pins.abandon(spec.pins)
    assert start(spec) is None
    assert len(list(xdp.XdpDatapath.open(spec.pins).flows.items())) == 20


def test_a_start_that_died_half_way_is_done_again(spec: Spec, layout_1: Path) -> None:
    start(spec)
    attached(spec).close()
    resized = replace(spec, max_flows=2048)
    start(resized)
    (spec.pins / maps.META.name).unlink()  # as if killed before the last step
    assert start(resized) == 20
    datapath = attached(resized)
    assert len(list(datapath.flows.items())) == 20
    datapath.close()
