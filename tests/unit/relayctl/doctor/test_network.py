from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from relayctl.config import Interface
from relayctl.doctor import network
from relayctl.doctor.host import Host, Route
from relayctl.doctor.result import Result, Status
from tests.unit.relayctl.doctor.test_kernel import judged, write
from tests.unit.relayctl.test_config import V6, config
from tests.unit.relayctl.test_config_rules import LOCAL

OUTER = Interface(name="outer0", role="outer")
NETWORK = ip_network("10.2.0.0/24")


def sysctls(root: Path, **values: int) -> Path:
    """`all__arp_ignore=1` is net.ipv4.conf.all.arp_ignore."""
    for name, value in values.items():
        write(root, f"sys/net/ipv4/conf/{name.replace('__', '/')}", f"{value}\n")
    return root


def test_vip_present() -> None:
    [found] = network.vip_present(config(), Host(addresses={"203.0.113.10": "lo"}))
    judged(found, Status.OK, "203.0.113.10:3478 on lo")


def test_vip_missing() -> None:
    [found] = network.vip_present(config(), Host())
    judged(found, Status.FAIL, "203.0.113.10", "ip address add 203.0.113.10/32 dev lo")


def test_loopback_addresses_are_always_present() -> None:
    [found] = network.vip_present(config(**LOCAL), Host())
    judged(found, Status.OK, "loopback")
    [found] = network.inner_addresses(config(**LOCAL), Host())
    judged(found, Status.OK, "loopback")


def test_missing_ipv6_addresses() -> None:
    [found] = network.vip_present(config(**V6), Host())
    judged(found, Status.FAIL, "fd00:a::5", "ip address add fd00:a::5/128 dev lo nodad")
    [found] = network.inner_addresses(config(**V6), Host())
    judged(found, Status.FAIL, "no interface", "ip address add fd00:b::1/64 dev <inner one>")


def test_inner_addresses() -> None:
    both = config(inner_address=["10.2.0.1", "fd00:b::1"])
    v4, v6 = network.inner_addresses(both, Host(addresses={"fd00:b::1": "inner0"}))
    assert (v4.name, v6.name) == ("inner-address:10.2.0.1", "inner-address:fd00:b::1")
    judged(v4, Status.FAIL, "no interface", "ip address add 10.2.0.1/24")
    judged(v6, Status.OK, "on inner0")


def arp(root: Path, host: Host) -> dict[str, Result]:
    return {each.name: each for each in network.arp(OUTER, config(), host, root)}


def test_arp_is_no_matter_of_ipv6(tmp_path: Path) -> None:
    found = network.arp(OUTER, config(**V6), Host(addresses={"fd00:a::5": "lo"}), tmp_path)
    assert {each.status for each in found} == {Status.SKIP}


def test_mend_for_a_vlan_device_is_what_sysctl_takes(tmp_path: Path) -> None:
    vlan = Interface(name="eth0.10", role="outer")
    announce, _ = network.arp(vlan, config(), ON_LO, tmp_path)
    assert announce.mend == "sysctl -w net.ipv4.conf.eth0/10.arp_announce=2"
    root = sysctls(tmp_path, all__rp_filter=1)
    assert "net.ipv4.conf.eth0/10.rp_filter=2" in network.reverse_path(vlan, root).mend


ON_LO = Host(addresses={"203.0.113.10": "lo"})


def test_vip_on_lo_must_not_be_claimed_in_arp(tmp_path: Path) -> None:
    found = arp(sysctls(tmp_path, all__arp_announce=0, all__arp_ignore=0), ON_LO)
    mend = "sysctl -w net.ipv4.conf.outer0.arp_announce=2"
    judged(found["arp_announce:outer0"], Status.WARN, "0:", mend)
    judged(found["arp_ignore:outer0"], Status.WARN, "0:", "arp_ignore=1")


def test_the_larger_of_all_and_interface_counts(tmp_path: Path) -> None:
    root = sysctls(
        tmp_path,
        all__arp_announce=2,
        outer0__arp_announce=0,
        all__arp_ignore=0,
        outer0__arp_ignore=1,
    )
    assert {each.status for each in arp(root, ON_LO).values()} == {Status.OK}


def test_vip_of_the_interface_itself_may_be_claimed(tmp_path: Path) -> None:
    found = arp(tmp_path, Host(addresses={"203.0.113.10": "outer0"}))
    assert {each.status for each in found.values()} == {Status.SKIP}


@pytest.mark.parametrize(
    ("both", "own", "status"),
    [(0, 0, Status.OK), (0, 1, Status.WARN), (1, 0, Status.WARN), (1, 2, Status.OK)],
)
def test_reverse_path(tmp_path: Path, both: int, own: int, status: Status) -> None:
    root = sysctls(tmp_path, all__rp_filter=both, outer0__rp_filter=own)
    judged(network.reverse_path(OUTER, root), status, "")


def test_mend_of_strict_reverse_path_works(tmp_path: Path) -> None:
    strict = network.reverse_path(OUTER, sysctls(tmp_path, all__rp_filter=1))
    assert strict.mend.startswith("sysctl -w ")
    pairs = dict(word.split("=") for word in strict.mend.split()[2:])
    for key, value in pairs.items():
        write(tmp_path, f"sys/{key.replace('.', '/')}", value)
    assert network.reverse_path(OUTER, tmp_path).status is Status.OK


@pytest.mark.parametrize(
    ("handed_out", "reserved", "status", "detail"),
    [
        ("32768\t60999", "", Status.OK, "5100-5115"),
        ("1024\t65535", "", Status.WARN, "1024-65535"),
        ("1024\t65535", "80,5100-5115", Status.OK, "reserved"),
        ("1024\t65535", "5100-5114", Status.WARN, "1024-65535"),
    ],
)
def test_inner_ports(
    tmp_path: Path, handed_out: str, reserved: str, status: Status, detail: str
) -> None:
    write(tmp_path, "sys/net/ipv4/ip_local_port_range", f"{handed_out}\n")
    write(tmp_path, "sys/net/ipv4/ip_local_reserved_ports", f"{reserved}\n")
    judged(network.inner_ports(config(), tmp_path), status, detail)


def test_transparent_mode_has_no_inner_ports(tmp_path: Path) -> None:
    found = config(inner="transparent").model_copy(update={"inner_addresses": ()})
    judged(network.inner_ports(found, tmp_path), Status.SKIP, "transparent")


@pytest.mark.parametrize(
    ("route", "flags", "status", "detail"),
    [
        (Route("inner0"), {}, Status.OK, "inner0"),
        (Route("inner0", "10.9.0.1"), {}, Status.OK, "inner0 via 10.9.0.1"),
        (None, {}, Status.FAIL, "no route"),
        (Route("outer0", "10.3.0.1"), {}, Status.FAIL, "outer0 via 10.3.0.1"),
        (Route("inner0", failed=True), {}, Status.WARN, "does not answer"),
        (Route("eth7"), {"datapath": "socket", "interface": []}, Status.OK, "eth7"),
    ],
)
def test_routes(route: Route | None, flags: dict[str, Any], status: Status, detail: str) -> None:
    [found] = network.routes(config(**flags), Host(routes={NETWORK: route}))
    assert found.name == "route:10.2.0.0/24"
    judged(found, status, detail)


def test_one_result_for_a_network_of_two_clusters() -> None:
    clusters = [{"id": number, "allow": ["10.2.0.0/24"]} for number in (7, 8)]
    assert len(network.routes(config(cluster=clusters), Host())) == 1
