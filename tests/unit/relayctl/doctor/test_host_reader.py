from ipaddress import ip_network

import pytest
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from relayctl.doctor import host_reader
from tests.unit.relayctl.test_config import config
from tests.unit.relayctl.test_config_rules import LOCAL


@pytest.mark.parametrize(
    ("network", "own", "host"),
    [
        ("10.2.0.0/24", {}, "10.2.0.1"),
        ("10.2.0.0/24", {"10.2.0.1": "inner0"}, "10.2.0.2"),
        ("10.2.0.2/32", {}, "10.2.0.2"),
        ("10.2.0.2/32", {"10.2.0.2": "inner0"}, "10.2.0.2"),
        ("10.2.0.0/31", {}, "10.2.0.0"),
        ("fd00:b::/112", {"fd00:b::1": "inner0"}, "fd00:b::2"),
        ("fd00:b::/96", {}, "fd00:b::1"),
    ],
)
def test_probe_address_is_not_our_own(network: str, own: dict[str, str], host: str) -> None:
    assert host_reader.probe_address(ip_network(network), own) == host


def test_reads_the_loopback_interface() -> None:
    host = host_reader.read(config(**LOCAL))
    loopback = host.link("lo")
    assert loopback is not None
    assert (loopback.index, loopback.kind, loopback.program) == (1, "", None)
    assert host.by_index(1) is loopback
    assert host.addresses["127.0.0.1"] == "lo"
    assert (loopback.driver, loopback.channels) == ("", None)
    route = host.routes[ip_network("127.0.0.0/8")]
    assert route is not None
    assert (route.interface, route.gateway) == ("lo", None)


def test_reads_ipv6() -> None:
    cluster = {"id": 9, "prefix": "::/96", "allow": ["::1/128"]}
    vip = {"id": 1, "public": "[::1]:3478"}
    flags = {**LOCAL, "inner_address": "::1", "vip": [vip], "cluster": [cluster]}
    host = host_reader.read(config(**flags))
    if "::1" not in host.addresses:
        pytest.skip("this host has no IPv6")
    route = host.routes[ip_network("::1/128")]
    assert route is not None
    assert route.interface == "lo"


def test_reads_the_driver_of_a_veth() -> None:
    with IPRoute() as netlink:
        try:
            netlink.link("add", ifname="fd-0", kind="veth", peer={"ifname": "fd-1"})
        except NetlinkError:
            pytest.skip("needs CAP_NET_ADMIN")
        try:
            link = host_reader.read(config(**LOCAL)).link("fd-0")
        finally:
            netlink.link("del", ifname="fd-0")
    assert link is not None
    assert (link.driver, link.kind) == ("veth", "veth")
    assert link.channels is not None
    assert link.channels.used == 1
