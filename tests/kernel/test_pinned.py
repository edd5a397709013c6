"""The pins of a real instance, read as the command line reads them. Needs root and BCC."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyroute2 import netns

from relayctl.datapath import xdp
from relayctl.datapath.base import DatapathError, Nexthop
from relayctl.datapath.spec import Interface, Mode, Role, Spec
from relayctl.doctor.program import adoption_faults, name_of, trial_spec, try_compile
from relayctl.flow import Flow, FlowKey
from relayctl.inspect import pinned
from relayctl.inspect.pin_reader import PinReader
from relayctl.wire.route_token import Key
from tests.unit.relayctl.test_config import config

NAMESPACE = f"cli-{os.getpid()}"
LOOPBACK = Interface("lo", 1, 1, Role.BOTH)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="loads BPF programs: needs root")


@pytest.fixture(scope="module")
def bpffs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("bpf")
    subprocess.run(["mount", "-t", "bpf", "bpf", str(path)], check=True)
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture(scope="module")
def spec(bpffs: Path) -> Iterator[Spec]:
    """A loaded program on the loopback interface of a namespace of its own."""
    made = replace(trial_spec(config(bpffs=str(bpffs)), "relay-a"), mode=Mode.GENERIC)
    xdp.load(made)
    netns.create(NAMESPACE)
    netns.pushns(NAMESPACE)
    datapath = xdp.XdpDatapath.open(made.pins)
    datapath.attach([LOOPBACK], Mode.GENERIC)
    yield made
    datapath.close()
    xdp.unload(made.instance, str(bpffs))
    netns.popns()
    netns.remove(NAMESPACE)


def test_names_behind_the_numbers(spec: Spec, bpffs: Path) -> None:
    found = pinned.open_pinned("relay-a", bpffs)
    assert found.vips == {1: "203.0.113.10:3478"}
    assert found.ports == {1: "lo"}
    assert found.attached == {1}
    assert found.interfaces() == [
        {"name": "lo", "role": "both", "port": 1, "tags": [], "mode": "generic"}
    ]
    assert found.capacity == {"v4": 16, "v6": 16}
    assert found.program is not None
    assert name_of(found.program) == "ferryline_relay"
    assert found.keys == ()
    found.datapath.close()


def test_reader_on_real_maps(spec: Spec, bpffs: Path) -> None:
    writer = xdp.XdpDatapath.open(spec.pins)
    writer.write_nexthop(1, Nexthop(1, "10.2.0.2", valid=True))
    flow = Flow(("10.2.0.2", 5000), 7, 5100, nexthop_in=1, nexthop_out=1, packets_up=5, born=90)
    assert writer.flows.install(FlowKey(("198.51.100.7", 40000), 1), flow)
    assert writer.flows.install(FlowKey(("2001:db8::1", 40000), 1), flow)
    writer.write_keys({3: Key(3, bytes(range(32)))})
    writer.beat(98)
    writer.close()
    reader = PinReader("relay-a", pinned.open_pinned("relay-a", bpffs), lambda: 100)
    [found] = reader.flow(("198.51.100.7", 40000), "203.0.113.10:3478")
    assert (found["endpoint"], found["path"], found["packets"]["up"]) == (
        "10.2.0.2:5000",
        "kernel",
        5,
    )
    status = reader.status()
    assert status["datapath"] == "xdp-generic"
    assert status["kernel"]["keys"] == [3]
    assert status["kernel"]["flows"] == {
        "v4": {"new": 1, "confirmed": 0, "max": 16},
        "v6": {"new": 1, "confirmed": 0, "max": 16},
    }
    assert reader.census().clusters == {7: 2}
    assert reader.nexthops()[0]["interface"] == "lo"
    reader.close()


def test_the_mode_does_not_depend_on_the_network_namespace(spec: Spec, bpffs: Path) -> None:
    netns.popns()
    try:
        found = pinned.open_pinned("relay-a", bpffs)
    finally:
        netns.pushns(NAMESPACE)
    assert found.name == "xdp-generic"
    assert found.ports == {1: "lo"}
    found.datapath.close()


def test_attached_programs_are_ours(spec: Spec, bpffs: Path) -> None:
    found = pinned.own_programs(bpffs, "relay-a")
    [id] = found.programs
    assert name_of(id) == "ferryline_relay"
    assert not found.unknown


def test_no_pins(bpffs: Path) -> None:
    with pytest.raises(DatapathError, match="relay-z"):
        pinned.open_pinned("relay-z", bpffs)
    assert pinned.own_programs(bpffs, "relay-z") == pinned.Own()


def test_pins_that_the_next_start_takes_over(spec: Spec, bpffs: Path) -> None:
    same = config(bpffs=str(bpffs), max_flows=16, max_flows_v6=16)
    assert adoption_faults(same) == []
    moved = config(bpffs=str(bpffs), inner_address="10.2.0.7")
    [fault] = adoption_faults(moved)
    assert "inner: pinned" in fault


def test_trial_compile_leaves_nothing(bpffs: Path) -> None:
    before = sorted(bpffs.rglob("*"))
    try_compile(config(bpffs=str(bpffs)))
    assert sorted(bpffs.rglob("*")) == before
