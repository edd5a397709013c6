"""Netlink messages as the kernel sends them: recorded bytes, or written where this kernel lacks
the device."""

import socket
import struct
from ipaddress import IPv4Network, IPv6Network

import pytest
from pyroute2.netlink.rtnl.marshal import MarshalRtnl

from relayctl.control import facts
from relayctl.control.facts import (
    Fact,
    LinkGone,
    Neighbour,
    NeighbourGone,
    RouteGone,
    RouteSet,
    RoutesUncertain,
)
from relayctl.control.link import ELSEWHERE, SERVICE_TAG, Link, Vlan
from relayctl.control.network import KernelHop, KernelRoute

NEWLINK, DELLINK, DELADDR, NEWROUTE, DELROUTE, NEWNEIGH, DELNEIGH = 16, 17, 21, 24, 25, 28, 29
NEWADDR, NEWNEXTHOP, DELNEXTHOP = 20, 104, 105
REPLACE, CREATE = 0x100, 0x400
MAC = bytes.fromhex("020000000001")
V4, V6 = socket.AF_INET, socket.AF_INET6


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def number(value: int) -> bytes:
    return struct.pack("=I", value)


def host(text: str) -> bytes:
    return socket.inet_pton(V6 if ":" in text else V4, text)


def fact(kind: int, body: bytes, flags: int = 0) -> Fact | None:
    header = struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0)
    [message] = MarshalRtnl().parse(header + body)
    return facts.fact(message)


def link(*attributes: bytes, flags: int = 0x11043, index: int = 5) -> bytes:
    named = attribute(3, b"eth0\0") + attribute(1, MAC) + attribute(4, number(1450))
    return struct.pack("=BxHiII", 0, 1, index, flags, 0) + named + b"".join(attributes)


def vlan(id: int, protocol: int | None = None) -> bytes:
    data = attribute(1, struct.pack("=H", id))
    if protocol:
        data += attribute(5, struct.pack("!H", protocol))
    return attribute(18, attribute(1, b"vlan\0") + attribute(2, data))


def route(
    family: int, length: int, *attributes: bytes, kind: int = 1, table: int = 254, flags: int = 0
) -> bytes:
    head = struct.pack("=BBBBBBBBI", family, length, 0, 0, table, 3, 0, kind, flags)
    return head + b"".join(attributes)


def neighbour(text: str, state: int, mac: bytes = MAC, flags: int = 0) -> bytes:
    family = V6 if ":" in text else V4
    body = struct.pack("=BxxxiHBB", family, 5, state, flags, 1) + attribute(1, host(text))
    return body + (attribute(2, mac) if mac else b"")


OIF = attribute(4, number(5))


def test_a_link() -> None:
    assert fact(NEWLINK, link()) == Link(5, "eth0", MAC, True, 1450)
    assert fact(NEWLINK, link(flags=0x1003)) == Link(5, "eth0", MAC, False, 1450), "no carrier"
    assert fact(DELLINK, link()) == LinkGone(5)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param([attribute(5, number(2)), vlan(10, 0x8100)], Vlan(2, 10), id="customer"),
        pytest.param([attribute(5, number(2)), vlan(10)], Vlan(2, 10), id="no_protocol"),
        pytest.param(
            [attribute(5, number(2)), vlan(4094, SERVICE_TAG)],
            Vlan(2, 4094, SERVICE_TAG),
            id="service",
        ),
        pytest.param(
            [attribute(5, number(2)), attribute(37, number(0)), vlan(10)],
            Vlan(ELSEWHERE, 10),
            id="lower_device_in_another_namespace",
        ),
        pytest.param(
            [attribute(5, number(2)), attribute(18, attribute(1, b"macvlan\0"))], None, id="macvlan"
        ),
    ],
)
def test_a_vlan_device(attributes: list[bytes], expected: Vlan | None) -> None:
    found = fact(NEWLINK, link(*attributes))
    assert isinstance(found, Link)
    assert found.vlan == expected


@pytest.mark.parametrize("gateway", ["10.3.0.1", "fe80::1"])
def test_a_default_route(gateway: str) -> None:
    family = V6 if ":" in gateway else V4
    body = route(family, 0, attribute(5, host(gateway)), OIF, attribute(6, number(1024)))
    network = IPv6Network("::/0") if family == V6 else IPv4Network("0.0.0.0/0")
    expected = KernelRoute(network, (KernelHop(5, gateway),), 1024)
    assert fact(NEWROUTE, body, CREATE) == RouteSet(expected, replaces=False)
    assert fact(NEWROUTE, body, REPLACE) == RouteSet(expected, replaces=True)
    assert fact(DELROUTE, body) == RouteGone(expected)


def kernel_route(body: bytes) -> KernelRoute | None:
    found = fact(NEWROUTE, body)
    return found.route if isinstance(found, RouteSet) else None


def test_several_hops_and_a_dead_one() -> None:
    hops = b""
    for index, flags in ((5, 0), (6, 0x10)):
        via = attribute(5, host("fe80::1"))
        hops += struct.pack("=HBBi", 8 + len(via), flags, 0, index) + via
    found = kernel_route(route(V6, 32, attribute(1, host("2001:db8::")), attribute(9, hops)))
    assert found
    assert [(hop.link, hop.gateway, hop.dead) for hop in found.hops] == [
        (5, "fe80::1", False),
        (6, "fe80::1", True),
    ]


def test_an_ipv4_network_behind_an_ipv6_gateway() -> None:
    via = attribute(18, struct.pack("=H", V6) + host("fe80::7"))
    found = kernel_route(route(V4, 16, attribute(1, host("10.20.0.0")), via, OIF))
    assert found == KernelRoute(IPv4Network("10.20.0.0/16"), (KernelHop(5, "fe80::7"),))


def test_a_route_with_an_mtu() -> None:
    metrics = attribute(8, attribute(2, number(1400)))
    found = kernel_route(route(V6, 64, attribute(1, host("fd00::")), OIF, metrics))
    assert found == KernelRoute(IPv6Network("fd00::/64"), (KernelHop(5, None),), mtu=1400)


@pytest.mark.parametrize("kind", [6, 7, 8])
def test_an_unreachable_network(kind: int) -> None:
    found = kernel_route(route(V6, 16, attribute(1, host("fd00::")), OIF, kind=kind))
    assert found == KernelRoute(IPv6Network("fd00::/16"), ())


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(route(V6, 128, attribute(1, host("fd09::1")), OIF, kind=2), id="local"),
        pytest.param(route(V6, 128, attribute(1, host("fd09::")), OIF, kind=4), id="anycast"),
        pytest.param(route(V6, 8, attribute(1, host("ff00::")), OIF, kind=5), id="multicast"),
        pytest.param(route(V6, 64, attribute(1, host("fd09::")), OIF, table=255), id="local_table"),
        pytest.param(
            route(V6, 64, attribute(1, host("fd09::")), OIF, attribute(15, number(1000))),
            id="other_table",
        ),
        pytest.param(route(V6, 128, attribute(1, host("fd09::9")), OIF, flags=0x200), id="cached"),
        pytest.param(route(V6, 64, attribute(1, host("fe80::")), OIF), id="link_local"),
        pytest.param(route(129, 0, OIF), id="other_family"),
    ],
)
def test_routes_that_carry_nothing_of_ours(body: bytes) -> None:
    assert fact(NEWROUTE, body) is None


def test_a_link_local_network_of_ipv4_is_one_like_others() -> None:
    assert kernel_route(route(V4, 16, attribute(1, host("169.254.0.0")), OIF)) is not None


@pytest.mark.parametrize("at", ["10.3.0.1", "fe80::1"])
def test_a_neighbour(at: str) -> None:
    assert fact(NEWNEIGH, neighbour(at, 0x02)) == Neighbour(5, at, MAC)
    assert fact(NEWNEIGH, neighbour(at, 0x20, mac=b"")) == Neighbour(5, at, None)
    assert fact(NEWNEIGH, neighbour(at, 0x80)) == Neighbour(5, at, MAC, fixed=True)
    assert fact(NEWNEIGH, neighbour(at, 0x01, mac=b"")) is None, "being resolved for the first time"
    assert fact(DELNEIGH, neighbour(at, 0x02)) == NeighbourGone(5, at)


@pytest.mark.parametrize("kind", [NEWNEIGH, DELNEIGH])
def test_neighbours_that_are_none(kind: int) -> None:
    assert fact(kind, neighbour("ff02::1:ff00:1", 0x40)) is None
    assert fact(kind, neighbour("fd09::7", 0x80, flags=0x08)) is None, "we answer for it"
    bridge = struct.pack("=BxxxiHBB", 7, 5, 0x80, 0, 1) + attribute(2, MAC)
    assert fact(kind, bridge) is None


def test_what_may_take_routes_along_in_silence() -> None:
    address = struct.pack("=BBBBi", V4, 24, 0, 0, 5) + attribute(2, host("10.9.0.1"))
    assert fact(DELADDR, address) == RoutesUncertain()
    assert fact(NEWADDR, address) is None, "its network is announced as a route"
    nexthop = struct.pack("=BBBBI", V4, 0, 0, 0, 0) + attribute(1, number(1))
    assert fact(DELNEXTHOP, nexthop) == RoutesUncertain()
    assert fact(NEWNEXTHOP, nexthop, REPLACE) == RoutesUncertain()
    assert fact(NEWNEXTHOP, nexthop, CREATE) is None, "no route uses it yet"
