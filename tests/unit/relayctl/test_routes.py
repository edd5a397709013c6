from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.datapath.base import NEXTHOPS, Nexthop
from relayctl.routes import Hop, NexthopIndex, Route, Routes, Way

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


def test_uses_and_on_link() -> None:
    routes = Routes([DEFAULT, INNER])
    assert routes.uses(1, "10.3.0.1")
    assert not routes.uses(2, "10.3.0.1")
    assert routes.on_link(2, "10.2.0.2")
    assert not routes.on_link(1, "10.2.0.2")
    assert not Routes().on_link(1, "10.2.0.2")


def test_equal_cost_ways_share_hosts_and_a_lost_one_moves_only_its_own() -> None:
    hops = tuple(Hop(1, f"10.3.0.{n}") for n in (1, 2, 3))
    hosts = [f"198.51.100.{n}" for n in range(250)]
    before = {host: Routes([Route(DEFAULT.network, hops)]).find(host) for host in hosts}
    after = {host: Routes([Route(DEFAULT.network, hops[:2])]).find(host) for host in hosts}
    lost = Way(1, "10.3.0.3", 1500)
    assert 50 < sum(way == lost for way in before.values()) < 120
    assert all(after[host] == way for host, way in before.items() if way != lost)


NETWORKS = st.builds(
    lambda number, length: IPv4Network((number, length), strict=False),
    st.integers(0, 2**32 - 1),
    st.integers(0, 32),
)


@given(st.lists(NETWORKS, max_size=12, unique=True), st.integers(0, 2**32 - 1))
def test_find_agrees_with_a_search_of_all_routes(networks: list[IPv4Network], number: int) -> None:
    host = str(IPv4Address(number))
    routes = Routes(Route(net, (Hop(1, f"gw {net}"),)) for net in networks)
    holding = [net for net in networks if IPv4Address(host) in net]
    best = max(holding, key=lambda net: net.prefixlen, default=None)
    assert routes.find(host) == (best and Way(1, f"gw {best}", 1500))
    assert routes.find(host) == routes.find(host)  # the second answer comes from the cache


WAY = Way(1, "10.3.0.1", 1500)


def test_index_keeps_numbers_of_an_earlier_run() -> None:
    index = NexthopIndex({7: Nexthop(1, "10.3.0.1", "10.2.0.1")})
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
    index = NexthopIndex({7: Nexthop(1, "10.3.0.1", "10.2.0.1")})
    assert index.release(7, 100, unused_for=60)
    assert not index.release(7, 100, unused_for=60)
    assert index.reserve(WAY, 100) == 7
