"""Attach, swap, refuse, look and take off: the XDP datapath as its users see it."""

import asyncio
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from relayctl.datapath import links, pins, xdp
from relayctl.datapath.base import PORTS, DatapathError, Nexthop
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import DRIVER_MODE, BpfError, Link, Program, xdp_on
from relayctl.datapath.spec import Interface, Mode, Role, Spec
from relayctl.doctor.links import VETH_MTU
from relayctl.flow import Flow, FlowKey, pack_flow
from relayctl.reason import Reason
from relayctl.wire.address import Address
from relayctl.wire.route_token import Key
from tests.kernel import rig
from tests.kernel.conftest import veth


@pytest.fixture
def interface(namespace: None) -> Iterator[Interface]:
    """One fresh veth end."""
    veth("fresh0")
    yield Interface("fresh0", rig.ifindex("fresh0"), 1, Role.OUTER)
    subprocess.run(["ip", "link", "del", "fresh0"], check=False, capture_output=True)


@pytest.fixture(scope="module")
def pinned(bpffs: Path, namespace: None) -> Iterator[Spec]:
    """Compiled once: which program hangs on an interface is all the same here."""
    made = rig.spec(bpffs, "attached")
    xdp.load(made)
    yield made
    xdp.unload(made.instance, made.bpffs)


@pytest.fixture
def spec(pinned: Spec, interface: Interface) -> Iterator[Spec]:
    yield replace(pinned, interfaces=(interface,))
    links.detach(pinned.pins.parent)


@pytest.fixture
def datapath(spec: Spec) -> Iterator[xdp.XdpDatapath]:
    opened = xdp.XdpDatapath.open(spec.pins)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def foreign(loaded: rig.Rig) -> Program:
    """A program that is not of this instance."""
    return loaded.program


def test_attach_is_native_and_pinned(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    assert datapath.name == "xdp-detached"
    datapath.attach(spec.interfaces)
    with Program.open(spec.pins / "program") as program:
        assert xdp_on(interface.ifindex).native == program.id
    assert (spec.pins.parent / f"link-{interface.ifindex}").exists()
    assert (datapath.name, datapath.attached()) == ("xdp-native", [interface.ifindex])


def test_generic_when_asked_for(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    datapath.attach(spec.interfaces, Mode.GENERIC)
    assert xdp_on(interface.ifindex).native == 0
    assert datapath.name == "xdp-generic"


def test_program_outlives_its_handles(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    datapath.attach(spec.interfaces)
    datapath.close()
    assert xdp_on(interface.ifindex).native


def test_second_start_swaps_the_program_in_the_same_link(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    datapath.attach(spec.interfaces)
    first = xdp_on(interface.ifindex).native
    with Link.open(spec.pins.parent / f"link-{interface.ifindex}") as link:
        id = link.id
    second = xdp.load(spec).program_id
    datapath.attach(spec.interfaces)
    assert xdp_on(interface.ifindex).native == second != first
    with Link.open(spec.pins.parent / f"link-{interface.ifindex}") as link:
        assert link.id == id


def test_attaching_the_same_program_again_changes_nothing(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    datapath.attach(spec.interfaces)
    first = xdp_on(interface.ifindex)
    datapath.attach(spec.interfaces)
    assert xdp_on(interface.ifindex) == first


def test_other_mode_than_before_is_refused(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    datapath.attach(spec.interfaces, Mode.GENERIC)
    with pytest.raises(DatapathError, match=r"fresh0: .* in generic mode, wanted native.*: rm "):
        datapath.attach(spec.interfaces, Mode.NATIVE)


def test_update_that_expects_another_program_is_refused_by_the_kernel(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface, foreign: Program
) -> None:
    datapath.attach(spec.interfaces)
    path = spec.pins.parent / f"link-{interface.ifindex}"
    with Link.open(path) as link, pytest.raises(BpfError, match="cannot update BPF link"):
        link.update(foreign, expected=foreign)


def test_foreign_program_behind_a_link_is_named_and_stays(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface, foreign: Program
) -> None:
    with Link.attach_xdp(foreign, interface.ifindex, DRIVER_MODE) as held:
        said = f"fresh0 carries another XDP program: id {foreign.id}, 'ferryline_relay', held by "
        with pytest.raises(DatapathError, match=f"{said}BPF link {held.id}; stop"):
            datapath.attach(spec.interfaces)
        assert xdp_on(interface.ifindex).native == foreign.id


@pytest.mark.parametrize("mode", ["xdpdrv", "xdpgeneric"])
def test_foreign_program_without_a_link_is_named_with_the_mend(
    datapath: xdp.XdpDatapath,
    spec: Spec,
    interface: Interface,
    foreign: Program,
    loaded: rig.Rig,
    mode: str,
) -> None:
    pinned = str(loaded.pins / "program")
    command = ["ip", "link", "set", "dev", "fresh0", mode, "pinned", pinned]
    subprocess.run(command, check=True)
    with pytest.raises(DatapathError, match=f"id {foreign.id}, .*needs it: ") as refused:
        datapath.attach(spec.interfaces)
    mend = str(refused.value).partition("needs it: ")[2]
    subprocess.run(mend.split(), check=True)
    datapath.attach(spec.interfaces)


def test_nobody_else_replaces_or_removes_what_the_link_holds(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    datapath.attach(spec.interfaces)
    off = subprocess.run(
        ["ip", "link", "set", "dev", "fresh0", "xdp", "off"], capture_output=True, text=True
    )
    assert off.returncode
    assert xdp_on(interface.ifindex).native


def test_refusal_carries_the_kernels_words(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    for end in ("fresh0", "fresh0-"):
        subprocess.run(["ip", "link", "set", "dev", end, "mtu", "9000"], check=True)
    said = "fresh0: the kernel refuses the program in native mode: .*MTU.*; mend that, or set"
    with pytest.raises(DatapathError, match=said):
        datapath.attach(spec.interfaces)
    assert xdp_on(interface.ifindex).native == 0


def test_the_other_end_decides_how_large_frames_may_be(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    for end, mtu in (("fresh0", 9000), ("fresh0-", VETH_MTU + 1)):
        subprocess.run(["ip", "link", "set", "dev", end, "mtu", str(mtu)], check=True)
    with pytest.raises(DatapathError, match=r"fresh0: .*MTU"):
        datapath.attach(spec.interfaces)
    subprocess.run(["ip", "link", "set", "dev", "fresh0-", "mtu", str(VETH_MTU)], check=True)
    datapath.attach(spec.interfaces)
    assert datapath.attached() == [interface.ifindex]


def test_refusal_is_told_inside_an_event_loop_too(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    async def attach() -> None:
        datapath.attach(spec.interfaces)

    for end in ("fresh0", "fresh0-"):
        subprocess.run(["ip", "link", "set", "dev", end, "mtu", "9000"], check=True)
    with pytest.raises(DatapathError, match=r"MTU"):
        asyncio.run(attach())


def test_number_of_an_interface_that_is_gone_is_used_again(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    datapath.attach(spec.interfaces)
    subprocess.run(["ip", "link", "del", "fresh0"], check=True)
    assert datapath.attached() == []
    add = f"link add fresh0 index {interface.ifindex} type veth peer name fresh0-"
    subprocess.run(["ip", *add.split()], check=True)
    datapath.attach(spec.interfaces)
    assert datapath.attached() == [interface.ifindex]


def test_number_of_an_interface_may_be_any(datapath: xdp.XdpDatapath, spec: Spec) -> None:
    """Ports of egress are numbers of ours."""
    add = "link add large0 index 1000000 type veth peer name large0-"
    subprocess.run(["ip", *add.split()], check=True)
    try:
        datapath.attach([Interface("large0", 1_000_000, PORTS - 1, Role.OUTER)])
        assert datapath.attached() == [1_000_000]
        with Map.open(spec.pins / "egress") as egress:
            port = egress.lookup(struct.pack("=I", PORTS - 1))
        assert port == struct.pack("=I", 1_000_000)
    finally:
        subprocess.run(["ip", "link", "del", "large0"], check=True)


def test_interface_that_left_the_configuration_is_let_go(
    datapath: xdp.XdpDatapath, spec: Spec, interface: Interface
) -> None:
    datapath.attach(spec.interfaces)
    datapath.attach(())
    assert xdp_on(interface.ifindex).native == 0
    assert datapath.attached() == []


def test_interface_that_does_not_exist(datapath: xdp.XdpDatapath) -> None:
    with pytest.raises(DatapathError, match=r"gone0 \(ifindex 99999\) is no"):
        datapath.attach([Interface("gone0", 99999, 1, Role.OUTER)])


def test_unload_leaves_nothing(bpffs: Path, interface: Interface) -> None:
    spec = rig.spec(bpffs, "unloaded", interfaces=(interface,))
    xdp.load(spec)
    datapath = xdp.XdpDatapath.open(spec.pins)
    datapath.attach(spec.interfaces)
    datapath.close()
    xdp.unload(spec.instance, spec.bpffs)
    assert xdp_on(interface.ifindex).native == 0
    assert not spec.pins.parent.exists()
    xdp.unload(spec.instance, spec.bpffs)  # and again


def test_a_handle_to_look_with(spec: Spec, datapath: xdp.XdpDatapath) -> None:
    key = FlowKey(rig.CLIENT, 1)
    datapath.flows.install(key, Flow(rig.ENDPOINT, 7, 5100))
    looking = xdp.open_readonly(spec.instance, spec.bpffs)
    assert [found for found, _ in looking.flows.items()] == [key]
    assert looking.flows.capacity == spec.max_flows + spec.max_flows_v6
    looking.close()
    datapath.flows.delete(key)


def test_nothing_to_look_at_is_a_clear_error(bpffs: Path) -> None:
    with pytest.raises(DatapathError, match="relay 'ghost' was not started since the last boot"):
        xdp.open_readonly("ghost", str(bpffs))


@pytest.mark.parametrize(
    ("client", "endpoint", "cluster"),
    [
        (rig.CLIENT, rig.ENDPOINT, 7),
        (rig.CLIENT, rig.ENDPOINT_V6, 8),
        (rig.CLIENT_V6, rig.ENDPOINT, 7),
        (rig.CLIENT_V6, rig.ENDPOINT_V6, 8),
    ],
)
def test_flows_are_written_read_and_deleted(
    datapath: xdp.XdpDatapath, client: Address, endpoint: Address, cluster: int
) -> None:
    key, flow = FlowKey(client, 1), Flow(endpoint, cluster, 5100, token=b"IWwJ+/iU", ssrc=9)
    assert datapath.flows.get(key) is None
    assert datapath.flows.install(key, flow)
    assert datapath.flows.install(key, flow._replace(nexthop_in=3))
    assert datapath.flows.get(key) == flow._replace(nexthop_in=3)
    assert list(datapath.flows.items()) == [(key, flow._replace(nexthop_in=3))]
    assert datapath.flows.delete(key)
    assert not datapath.flows.delete(key)


@pytest.mark.parametrize("client", [rig.CLIENT, rig.CLIENT_V6])
def test_only_the_first_flow_of_a_client_is_new(datapath: xdp.XdpDatapath, client: Address) -> None:
    key, flow = FlowKey(client, 1), Flow(rig.ENDPOINT, 7, 5100, token=b"IWwJ+/iU")
    assert datapath.flows.install_new(key, pack_flow(flow))
    assert not datapath.flows.install_new(key, pack_flow(flow._replace(sport=5101)))
    assert datapath.flows.get(key) == flow
    assert datapath.flows.delete(key)


def test_both_tables_are_one(datapath: xdp.XdpDatapath) -> None:
    flow = Flow(rig.ENDPOINT, 7, 5100)
    clients = [("192.0.2.1", 1), ("192.0.2.1", 2), ("2001:db8::1", 1)]
    flows = {FlowKey(client, 1): flow for client in clients}
    assert all(datapath.flows.install(key, flow) for key in flows)
    assert dict(datapath.flows.items()) == flows
    assert [(len(keys), len(values)) for keys, values in datapath.flows.batches()] == [
        (2 * 8, 2 * 72),
        (24, 72),
    ]
    assert all(datapath.flows.delete(key) for key in flows)


@pytest.mark.parametrize(
    ("full", "other"),
    [("192.0.2.1", "2001:db8::1"), ("2001:db8::1", "192.0.2.1")],
    ids=["v4_full", "v6_full"],
)
def test_full_table_refuses_new_flows_and_keeps_the_old(
    bpffs: Path, namespace: None, full: str, other: str
) -> None:
    spec = rig.spec(bpffs, "small", max_flows=8, max_flows_v6=8)
    pins.make(spec)
    datapath = xdp.XdpDatapath.open(spec.pins)
    flow = Flow(rig.ENDPOINT, 7, 5100)
    keys = [FlowKey((full, port), 1) for port in range(1, 65)]
    fitted = [key for key in keys if datapath.flows.install(key, flow)]
    assert 8 <= len(fitted) < len(keys)
    assert {key for key, _ in datapath.flows.items()} == set(fitted)
    assert datapath.flows.install(fitted[0], flow._replace(cluster=9))
    late = next(key for key in keys if key not in fitted)
    assert not datapath.flows.install_new(late, pack_flow(flow))
    assert datapath.flows.install(FlowKey((other, 1), 1), flow)
    datapath.close()
    xdp.unload(spec.instance, spec.bpffs)


@pytest.mark.parametrize("gateway", ["10.2.0.2", "fe80::1"])
def test_nexthops_are_read_back_by_index(datapath: xdp.XdpDatapath, gateway: str) -> None:
    nexthop = Nexthop(1, gateway, True, 1450, b"\2" * 6, b"\4" * 6, (5, 4094))
    datapath.write_nexthop(4095, nexthop)
    assert datapath.nexthops() == {4095: nexthop}
    datapath.write_nexthop(4095, None)
    assert datapath.nexthops() == {}


def test_keys_are_exactly_those_last_written(datapath: xdp.XdpDatapath, spec: Spec) -> None:
    with Map.open(spec.pins / "keys") as keys:
        for ids in ((0, 31), (1,), ()):
            datapath.write_keys({id: Key(id, bytes([id]) * 32) for id in ids})
            wanted = {id: bytes([id]) * 32 + b"\1" + bytes(7) for id in ids}
            slots = [keys.lookup(id.to_bytes(4, "little")) for id in range(32)]
            assert slots == [wanted.get(id, bytes(40)) for id in range(32)]


def test_heartbeat_is_read_back(datapath: xdp.XdpDatapath) -> None:
    datapath.beat(12345)
    assert datapath.alive() == 12345


def test_counters_of_the_packet_process_are_published(datapath: xdp.XdpDatapath) -> None:
    datapath.write_slow_reasons({Reason.SLOW_INSTALLED: 5, Reason.SLOW_FORGED: 2**40})
    reasons = datapath.reasons()
    assert set(reasons) == set(Reason)
    assert (reasons[Reason.SLOW_INSTALLED], reasons[Reason.SLOW_FORGED]) == (5, 2**40)
    assert sum(reasons.values()) == 5 + 2**40
