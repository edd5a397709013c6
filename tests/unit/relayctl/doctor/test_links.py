import dataclasses

import pytest

from relayctl.config import Interface
from relayctl.doctor import links
from relayctl.doctor.host import Host, Link
from relayctl.doctor.result import Status
from relayctl.inspect.pinned import Own
from tests.unit.relayctl.doctor.test_kernel import judged

NIC = Link(index=4, name="eth0", queues=4)
VETH = Link(index=5, name="outer0", kind="veth", peer=6)
ATTACHED = dataclasses.replace(NIC, program=17, mode="native")
PEER = Link(index=6, name="o0", kind="veth", peer=5)
OUTER = Interface(name="outer0", role="outer")


def host(*found: Link) -> Host:
    return Host(links=found)


def test_exists() -> None:
    judged(links.exists(OUTER, host(VETH)), Status.OK, "up, outer, mtu 1500")


def test_missing_interface_names_those_that_are_there() -> None:
    judged(links.exists(OUTER, host(NIC, PEER)), Status.FAIL, "there are eth0, o0")


def test_interface_is_down() -> None:
    down = dataclasses.replace(VETH, up=False)
    judged(links.exists(OUTER, host(down)), Status.FAIL, "down", "ip link set dev outer0 up")


@pytest.mark.parametrize(
    ("mtu", "peer", "mode", "status", "detail"),
    [
        (1500, 1500, "native", Status.OK, "1500"),
        (9000, 3506, "native", Status.OK, "9000"),
        (1500, 3507, "native", Status.FAIL, "3507 at o0"),
        (1500, 9000, "generic", Status.OK, "1500"),
    ],
)
def test_mtu_of_a_veth_is_limited_by_its_other_end(
    mtu: int, peer: int, mode: str, status: Status, detail: str
) -> None:
    link = dataclasses.replace(VETH, mtu=mtu)
    other = dataclasses.replace(PEER, mtu=peer)
    mend = "ip link set dev o0 mtu 3506" if status is Status.FAIL else ""
    judged(links.mtu(link, host(link, other), mode), status, detail, mend)


def test_mtu_of_a_veth_whose_other_end_is_elsewhere() -> None:
    link = dataclasses.replace(VETH, mtu=3507)
    judged(links.mtu(link, host(link), "native"), Status.WARN, "3507", "there: ip link set dev <")
    judged(links.mtu(VETH, host(VETH), "native"), Status.OK, "1500")


def test_mtu_of_hardware_is_the_drivers_matter() -> None:
    link = dataclasses.replace(NIC, mtu=9000)
    judged(links.mtu(link, host(link), "native"), Status.OK, "9000")


@pytest.mark.parametrize(("feature", "switch"), [("rx-lro", "lro"), ("rx-gro-hw", "rx-gro-hw")])
def test_receive_merging(feature: str, switch: str) -> None:
    on = dataclasses.replace(NIC, features=frozenset({feature}))
    judged(links.receive_merging(on, "generic"), Status.SKIP, "generic")
    judged(
        links.receive_merging(on, "native"), Status.FAIL, feature, f"ethtool -K eth0 {switch} off"
    )
    judged(links.receive_merging(NIC, "native"), Status.OK, "off")


@pytest.mark.parametrize(("mode", "status"), [("native", Status.WARN), ("generic", Status.FAIL)])
def test_gro_forwarding(mode: str, status: Status) -> None:
    on = dataclasses.replace(NIC, features=frozenset({"rx-udp-gro-forwarding"}))
    judged(links.gro_forwarding(on, mode), status, "merged", "rx-udp-gro-forwarding off")
    judged(links.gro_forwarding(NIC, mode), Status.OK, "off")


def test_promiscuous() -> None:
    judged(links.promiscuous(NIC), Status.OK, "off")
    listened = dataclasses.replace(NIC, promiscuous=True)
    mend = "ip link set dev eth0 promisc off"
    judged(links.promiscuous(listened), Status.WARN, "for other machines", mend)


def test_veth_peer_without_gro_loses_redirected_frames() -> None:
    judged(links.veth_peer(VETH, host(VETH, PEER)), Status.FAIL, "o0", "ethtool -K o0 gro on")


@pytest.mark.parametrize(
    "peer",
    [
        dataclasses.replace(PEER, features=frozenset({"rx-gro"})),
        dataclasses.replace(PEER, program=17),
    ],
)
def test_veth_peer_takes_frames_with_gro_or_a_program(peer: Link) -> None:
    judged(links.veth_peer(VETH, host(VETH, peer)), Status.OK, "o0")


def test_veth_peer_in_another_namespace_cannot_be_judged() -> None:
    alone = dataclasses.replace(VETH, peer=None)
    judged(links.veth_peer(alone, host(alone)), Status.WARN, "namespace", "gro on tx off")
    judged(links.veth_checksums(alone, host(alone)), Status.SKIP, "")


def test_veth_checksums() -> None:
    partial = dataclasses.replace(PEER, features=frozenset({"tx-checksum-ip-generic"}))
    found = links.veth_checksums(VETH, host(VETH, partial))
    judged(found, Status.WARN, "o0", "ethtool -K o0 tx off")
    judged(links.veth_checksums(VETH, host(VETH, PEER)), Status.OK, "o0")


def test_veth_checks_do_not_apply_to_hardware() -> None:
    judged(links.veth_peer(NIC, host(NIC)), Status.SKIP, "no veth")
    judged(links.veth_checksums(NIC, host(NIC)), Status.SKIP, "no veth")


STRIPS = frozenset({"rx-vlan-hw-parse"})
INSERTS = frozenset({"tx-vlan-hw-insert"})


@pytest.mark.parametrize(
    ("link", "vlan", "status", "mend"),
    [
        (NIC, True, Status.OK, ""),
        (dataclasses.replace(NIC, features=STRIPS), True, Status.FAIL, "-K eth0 rxvlan off"),
        (dataclasses.replace(NIC, features=STRIPS), False, Status.WARN, "-K eth0 rxvlan off"),
        (dataclasses.replace(VETH, features=STRIPS), False, Status.OK, ""),
    ],
)
def test_vlan_tags(link: Link, vlan: bool, status: Status, mend: str) -> None:
    judged(links.vlan_tags(link, host(link), vlan), status, "", mend)


def test_vlan_tags_behind_a_veth() -> None:
    judged(links.vlan_tags(VETH, host(VETH, PEER), True), Status.OK, "reach")
    inserts = dataclasses.replace(PEER, features=INSERTS)
    judged(
        links.vlan_tags(VETH, host(VETH, inserts), True),
        Status.WARN,
        "o0 may leave tags",
        "ethtool -K o0 txvlan off",
    )
    alone = links.vlan_tags(VETH, host(VETH), True)
    judged(alone, Status.WARN, "the other end", "<other end> txvlan off")


def test_vlan_device_is_carried_by_the_interface_below() -> None:
    upper = Link(index=9, name="eth0.10", kind="vlan", peer=4)
    double = Link(index=10, name="eth0.10.20", kind="vlan", peer=9)
    found = host(NIC, upper, double)
    assert found.carrier(NIC) == found.carrier(upper) == found.carrier(double) == NIC
    judged(
        links.exists(Interface(name="eth0.10", role="inner"), found),
        Status.OK,
        "inner, mtu 1500, on eth0",
    )
    assert host(upper).carrier(upper) == upper  # the one below is in another namespace


def test_program_of_ours_is_fine() -> None:
    judged(links.foreign_program(NIC, Own(), "", "native"), Status.OK, "free")
    found = links.foreign_program(ATTACHED, Own(frozenset({17})), "", "native")
    judged(found, Status.OK, "ours, id 17, native")


def test_program_of_ours_in_another_mode() -> None:
    found = links.foreign_program(ATTACHED, Own(frozenset({17})), "", "generic")
    judged(found, Status.FAIL, "ours, id 17, native, but xdp_mode = 'generic'", "unload")


def test_program_that_may_be_ours_is_not_called_foreign() -> None:
    own = Own(unknown="no BPF file system is visible at /sys/fs/bpf")
    found = links.foreign_program(ATTACHED, own, "ferryline_relay", "native")
    judged(found, Status.WARN, "cannot tell: program 17 (ferryline_relay)", "nsenter --net")
    assert "not ours" not in found.detail


@pytest.mark.parametrize(("name", "shown"), [("cil_xdp", "cil_xdp"), ("", "name unknown")])
def test_foreign_program_is_named(name: str, shown: str) -> None:
    found = links.foreign_program(ATTACHED, Own(frozenset({16})), name, "native")
    judged(found, Status.FAIL, f"program 17 ({shown})", "ip link set dev eth0 xdp off")


def test_foreign_generic_program_needs_another_word() -> None:
    attached = dataclasses.replace(NIC, program=17, mode="generic")
    found = links.foreign_program(attached, Own(), "x", "generic")
    judged(found, Status.FAIL, "program 17", "ip link set dev eth0 xdpgeneric off")
