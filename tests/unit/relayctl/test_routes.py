from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayctl.datapath.base import NEXTHOPS, Nexthop
from relayctl.routes import Hop, Network, NexthopIndex, Route, Routes, Way

DEFAULT = Route(IPv4Network("0.0.0.0/0"), (Hop(1, "10.3.0.1"),))
INNER = Route(IPv4Network("10.2.0.0/24"), (Hop(2, None, 1450),))
DETOUR = Route(IPv4Network("10.2.0.128/25"), (Hop(1, "10.3.0.9"),))


def test_longest_prefix_wins_and_a_host_on_the_link_is_its_own_gateway() -> None:
    routes = Routes([DEFAULT, INNER, DETOUR])
    assert routes.find("198.51.100.7") == Way(1, "10.3.0.1", 1500)
    assert routes.find("10.2.0.2") == Way(2, "10.2.0.2", 1450)
    assert routes.find("10.2.0.200") == Way(1, "10.3.0.9", 1500)
    assert Routes([INNER]).find("198.51.100.7") is None


def test_lowest_metric_wins_in_any_order() -> None:
    worse = Route(DEFAULT.network, (Hop(2, "10.2.0.9"),), metric=100)
    for routes in ([DEFAULT, worse], [worse, DEFAULT]):
        assert Routes(routes).find("8.8.8.8") == Way(1, "10.3.0.1", 1500)


def test_a_route_without_hops_is_unreachable_and_hides_wider_ones() -> None:
    blackhole = Route(IPv4Network("198.51.100.0/24"), ())
    assert Routes([DEFAULT, blackhole]).find("198.51.100.7") is None


def test_a_gateway_has_the_smallest_mtu_of_its_routes() -> None:
    narrow = Route(IPv4Network("192.0.2.0/24"), (Hop(1, "10.3.0.1", 1400),))
    for table in ([DEFAULT, narrow, INNER], [narrow, DEFAULT, INNER]):
        routes = Routes(table)
        assert routes.gateway(1, "10.3.0.1") == Way(1, "10.3.0.1", 1400)
        assert routes.gateway(2, "10.3.0.1") is None
        assert routes.gateway(2, "10.2.0.2") is None, "on the link, not behind it"


def test_equal_cost_ways_share_hosts_and_a_lost_one_moves_only_its_own() -> None:
    hops = tuple(Hop(1, f"10.3.0.{n}") for n in (1, 2, 3))
    hosts = [f"198.51.100.{n}" for n in range(250)]
    before = {host: Routes([Route(DEFAULT.network, hops)]).find(host) for host in hosts}
    after = {host: Routes([Route(DEFAULT.network, hops[:2])]).find(host) for host in hosts}
    lost = Way(1, "10.3.0.3", 1500)
    assert 50 < sum(way == lost for way in before.values()) < 120
    assert all(after[host] == way for host, way in before.items() if way != lost)


V6_DEFAULT = Route(IPv6Network("::/0"), (Hop(1, "fe80::1"),))
V6_INNER = Route(IPv6Network("fd00::/64"), (Hop(2, None, 1450),))


def test_both_families_live_in_one_table() -> None:
    routes = Routes([DEFAULT, INNER, V6_DEFAULT, V6_INNER])
    assert routes.find("2001:db8::7") == Way(1, "fe80::1", 1500)
    assert routes.find("fd00::2") == Way(2, "fd00::2", 1450)
    assert routes.find("198.51.100.7") == Way(1, "10.3.0.1", 1500)
    assert Routes([DEFAULT]).find("2001:db8::7") is None
    assert Routes([V6_DEFAULT]).find("198.51.100.7") is None


def test_a_link_local_gateway_is_that_of_its_port() -> None:
    routes = Routes([V6_DEFAULT])
    assert routes.gateway(1, "fe80::1") == Way(1, "fe80::1", 1500)
    assert routes.gateway(2, "fe80::1") is None


def test_the_route_of_a_whole_network_is_no_narrower_than_it() -> None:
    routes = Routes([DEFAULT, INNER, DETOUR])
    number = int(INNER.network.network_address)
    assert routes.match(4, number, 24) == INNER
    assert routes.match(4, number, 23) == DEFAULT
    assert routes.match(4, number + 128) == DETOUR


BITS = {4: 32, 6: 128}


def host_of(version: int, number: int) -> str:
    return str((IPv4Address if version == 4 else IPv6Address)(number))


def network_of(version: int, number: int, length: int) -> Network:
    return ip_network(f"{host_of(version, number)}/{length}", strict=False)


def networks(version: int) -> st.SearchStrategy[Network]:
    numbers, lengths = st.integers(0, 2 ** BITS[version] - 1), st.integers(0, BITS[version])
    return st.builds(network_of, st.just(version), numbers, lengths)


TABLES = st.sampled_from([4, 6]).flatmap(
    lambda version: st.tuples(
        st.just(version), st.lists(networks(version), max_size=12, unique=True)
    )
)


@given(TABLES, st.integers(0, 2**128 - 1))
@settings(deadline=None)
def test_find_agrees_with_a_search_of_all_routes(
    table: tuple[int, list[Network]], number: int
) -> None:
    version, nets = table
    host = host_of(version, number % 2 ** BITS[version])
    routes = Routes(Route(net, (Hop(1, f"gw {net}"),)) for net in nets)
    holding = [net for net in nets if ip_address(host) in net]
    best = max(holding, key=lambda net: net.prefixlen, default=None)
    assert routes.find(host) == (best and Way(1, f"gw {best}", 1500))
    assert routes.find(host) == routes.find(host)  # the second comes from the cache


@given(TABLES)
@settings(deadline=None)
def test_spans_cut_the_address_space_where_the_route_changes(
    table: tuple[int, list[Network]],
) -> None:
    version, nets = table
    routes = Routes(Route(net, (Hop(1, f"gw {net}"),)) for net in nets)
    spans = list(routes.spans(version))
    starts = [start for start, _ in spans]
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    ends = [*(start - 1 for start in starts[1:]), 2 ** BITS[version] - 1]
    for (start, route), end in zip(spans, ends, strict=True):
        for number in (start, (start + end) // 2, end):
            way = routes.find(host_of(version, number))
            assert (way and way.gateway) == (route and route.hops[0].gateway)


WAY = Way(1, "10.3.0.1", 1500)


def test_index_keeps_numbers_of_an_earlier_run() -> None:
    index = NexthopIndex({7: Nexthop(1, "10.3.0.1")})
    assert index.find(WAY, 0) == 7
    assert index.find(Way(2, "10.3.0.1", 1500), 0) is None
    assert len({index.reserve(Way(1, f"10.9.0.{n}", 1500), 0) for n in range(9)} - {0, 7}) == 9


def test_index_is_full_without_index_0() -> None:
    index = NexthopIndex({})
    taken = {index.reserve(Way(1, str(n), 1500), 0) for n in range(NEXTHOPS - 1)}
    assert taken == set(range(1, NEXTHOPS))
    assert index.reserve(WAY, 0) == 0


@pytest.mark.parametrize(("now", "released"), [(150, False), (160, False), (161, True)])
def test_index_releases_what_was_not_used_lately(now: int, released: bool) -> None:
    index = NexthopIndex({})
    number = index.reserve(WAY, 90)
    assert index.find(WAY, 100) == number
    assert index.release(number, now, unused_for=60) is released
    assert index.find(WAY, now) == (None if released else number)


def test_index_releases_nothing_twice() -> None:
    index = NexthopIndex({7: Nexthop(1, "10.3.0.1")})
    assert index.release(7, 100, unused_for=60)
    assert not index.release(7, 100, unused_for=60)
    assert index.reserve(WAY, 100) == 7
