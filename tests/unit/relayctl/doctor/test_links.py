import dataclasses

import pytest

from relayctl.config import Interface
from relayctl.doctor import links
from relayctl.doctor.host import Host, Link
from relayctl.doctor.result import Status
from tests.unit.relayctl.doctor.test_kernel import judged

NIC = Link(index=4, name="eth0", queues=4)
VETH = Link(index=5, name="outer0", kind="veth", peer=6)
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
    ("kind", "mtu", "mode", "status"),
    [
        ("veth", 1500, "native", Status.OK),
        ("veth", 3498, "native", Status.OK),
        ("veth", 3499, "native", Status.FAIL),
        ("veth", 9000, "generic", Status.OK),
        ("", 9000, "native", Status.OK),
    ],
)
def test_mtu(kind: str, mtu: int, mode: str, status: Status) -> None:
    link = dataclasses.replace(VETH, kind=kind, mtu=mtu)
    judged(links.mtu(link, mode), status, str(mtu))


@pytest.mark.parametrize(("feature", "switch"), [("rx-lro", "lro"), ("rx-gro-hw", "rx-gro-hw")])
def test_receive_merging(feature: str, switch: str) -> None:
    on = dataclasses.replace(NIC, features=frozenset({feature}))
    judged(links.receive_merging(on), Status.FAIL, feature, f"ethtool -K eth0 {switch} off")
    judged(links.receive_merging(NIC), Status.OK, "off")


def test_gro_forwarding() -> None:
    on = dataclasses.replace(NIC, features=frozenset({"rx-udp-gro-forwarding"}))
    judged(links.gro_forwarding(on), Status.WARN, "merged", "rx-udp-gro-forwarding off")
    judged(links.gro_forwarding(NIC), Status.OK, "off")


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


def test_vlan_tags() -> None:
    strips = frozenset({"rx-vlan-hw-parse"})
    on = dataclasses.replace(NIC, features=strips)
    judged(links.vlan_tags(on), Status.WARN, "stripped", "ethtool -K eth0 rxvlan off")
    judged(links.vlan_tags(dataclasses.replace(VETH, features=strips)), Status.OK, "")
    judged(links.vlan_tags(NIC), Status.OK, "")


def test_queues() -> None:
    judged(links.queues(NIC, cpus=4), Status.OK, "4 for sending, 4 CPUs")
    judged(links.queues(NIC, cpus=8), Status.WARN, "8 CPUs", "ethtool -L eth0 combined 8")
    judged(links.queues(VETH, cpus=8), Status.SKIP, "veth")


def test_program_of_ours_is_fine() -> None:
    judged(links.foreign_program(NIC, own=[], program=""), Status.OK, "free")
    attached = dataclasses.replace(NIC, program=17, mode="native")
    judged(links.foreign_program(attached, own=[17], program=""), Status.OK, "ours, id 17, native")


@pytest.mark.parametrize(("name", "shown"), [("cil_xdp", "cil_xdp"), ("", "name unknown")])
def test_foreign_program_is_named(name: str, shown: str) -> None:
    attached = dataclasses.replace(NIC, program=17, mode="native")
    found = links.foreign_program(attached, own=[16], program=name)
    judged(found, Status.FAIL, f"program 17 ({shown})", "ip link set dev eth0 xdp off")


def test_foreign_generic_program_needs_another_word() -> None:
    attached = dataclasses.replace(NIC, program=17, mode="generic")
    found = links.foreign_program(attached, own=[], program="x")
    judged(found, Status.FAIL, "program 17", "ip link set dev eth0 xdpgeneric off")
