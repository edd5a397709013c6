"""Whole slices against the answer for each flow alone."""

from ipaddress import IPv4Network, IPv6Network, ip_network

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayctl.control.astray import Ways
from relayctl.control.flow_slice import FlowSlice
from relayctl.datapath.base import Nexthop
from relayctl.flow import Flow, FlowKey, pack_flow
from relayctl.routes import Hop, Network, Route, Routes

PREFIX = bytes.fromhex("fd00000000000000000000aa")
ROUTES = [
    Route(IPv4Network("0.0.0.0/0"), (Hop(1, "10.3.0.1"), Hop(1, "10.3.0.2"))),
    Route(IPv4Network("10.2.0.0/24"), (Hop(2, None),)),
    Route(IPv4Network("192.0.2.0/24"), (Hop(0, "10.4.0.1"),)),
    Route(IPv4Network("198.18.0.0/15"), ()),
    Route(IPv6Network("2000::/3"), (Hop(1, "fe80::1"),)),
    Route(IPv6Network("fd00::/64"), (Hop(2, None),)),
]
ENTRIES = {
    1: Nexthop(1, "10.3.0.1"),
    2: Nexthop(1, "10.3.0.2"),
    3: Nexthop(2, "10.2.0.2"),
    4: Nexthop(1, "fe80::1"),
    5: Nexthop(2, "fe80::1"),
    6: Nexthop(2, "fd00::aa:a02:2"),
    7: Nexthop(1, "10.2.0.2"),
}


def slice_of(*flows: tuple[str, int, int, int]) -> FlowSlice:
    """Clients of one family, nexthop out, cluster, nexthop in; the endpoint is 10.2.0.2."""
    return FlowSlice(
        b"".join(FlowKey((host, 4000), 1) for host, *_ in flows),
        b"".join(
            pack_flow(Flow(("10.2.0.2", 5000), cluster, 5100, nexthop_in=into, nexthop_out=out))
            for _, out, cluster, into in flows
        ),
    )


@pytest.mark.parametrize(
    ("client", "out", "is_astray"),
    [
        ("198.51.100.7", 1, False),
        ("198.51.100.7", 2, False),
        ("198.51.100.7", 3, True),
        ("198.51.100.7", 0, True),
        ("198.51.100.7", 4095, True),
        ("10.2.0.2", 3, False),
        ("10.2.0.3", 3, True),
        ("10.2.0.2", 7, True),
        ("192.0.2.7", 0, False),
        ("192.0.2.7", 1, True),
        ("198.18.0.1", 3, False),
        ("2001:db8::7", 4, False),
        ("2001:db8::7", 5, True),
        ("2001:db8::7", 1, True),
        ("fd00::aa:a02:2", 6, False),
        ("fd00::aa:a02:3", 6, True),
        ("fe80::7", 4, False),
    ],
)
def test_the_way_to_a_client(client: str, out: int, is_astray: bool) -> None:
    ways = Ways(Routes(ROUTES), ENTRIES, {})
    assert ways.astray(slice_of((client, out, 7, 3))).tolist() == [is_astray]


@pytest.mark.parametrize(
    ("cluster", "into", "is_astray"),
    [(7, 3, False), (7, 7, True), (7, 0, True), (8, 6, False), (8, 3, True), (9, 5, False)],
)
def test_the_way_to_an_endpoint(cluster: int, into: int, is_astray: bool) -> None:
    prefixes = {8: PREFIX, 9: bytes.fromhex("4000000000000000000000aa")}
    ways = Ways(Routes(ROUTES), ENTRIES, prefixes)
    assert ways.astray(slice_of(("198.51.100.7", 1, cluster, into))).tolist() == [is_astray]


def networks(version: int) -> st.SearchStrategy[Network]:
    bits = {4: 32, 6: 128}[version]
    return st.builds(
        lambda number, length: ip_network(
            (number.to_bytes(bits // 8, "big"), length), strict=False
        ),
        st.integers(0, 2**bits - 1) | st.sampled_from([0, 1, 2**bits - 1, 2 ** (bits - 8)]),
        st.integers(0, bits),
    )


@pytest.mark.parametrize("version", [4, 6])
@given(data=st.data())
@settings(deadline=None)
def test_a_slice_agrees_with_the_table(version: int, data: st.DataObject) -> None:
    nets = data.draw(st.lists(networks(version), max_size=8, unique=True))
    gateways = [("10.9.0.%d" if version == 4 else "fd09::%x") % n for n in range(1, 10)]
    table = Routes(Route(net, (Hop(1, gw),)) for net, gw in zip(nets, gateways, strict=False))
    entries = {index: Nexthop(1, gateway) for index, gateway in enumerate(gateways, 1)}
    corners = [net[at] for net in nets for at in (0, -1)]
    hosts = [str(host) for host in corners] or ["198.51.100.7" if version == 4 else "2001:db8::7"]
    outs = data.draw(st.lists(st.integers(1, 9), min_size=len(hosts), max_size=len(hosts)))
    keys = b"".join(_packed(host) for host in hosts)
    values = b"".join(
        pack_flow(Flow(("10.2.0.2", 5000), 7, 5100, nexthop_in=1, nexthop_out=out)) for out in outs
    )
    ways = Ways(table, entries, {7: bytes(12)})
    endpoint_follows = ways.astray(FlowSlice(keys, values)) == _astray(table, entries, hosts, outs)
    endpoint = table.match(6, 0x0A020002)
    if endpoint is None or endpoint.hops[0].gateway == gateways[0]:
        assert endpoint_follows.all()


def _packed(host: str) -> bytes:
    if ":" in host:  # also what `pack_key` would take for IPv4
        return ip_network(host).network_address.packed + bytes(8)
    return FlowKey((host, 4000), 1)


def _astray(
    table: Routes, entries: dict[int, Nexthop], hosts: list[str], outs: list[int]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    found = []
    for host, out in zip(hosts, outs, strict=True):
        way = table.find(host)
        found.append(way is not None and way.gateway != entries[out].gateway)
    return np.array(found, bool)
