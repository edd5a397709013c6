from ipaddress import IPv4Network, IPv6Network

import pytest

from relayctl.control.link import Link
from relayctl.control.network import KernelHop, KernelRoute, Network
from relayctl.datapath.base import Nexthop
from relayctl.routes import Way

OUTER, INNER = 11, 12  # interface indices
PORTS = {OUTER: 1, INNER: 2}
MAC = bytes.fromhex("020000000001")
OUR_MAC = bytes.fromhex("0200000000aa")
DEFAULT = KernelRoute(IPv4Network("0.0.0.0/0"), (KernelHop(OUTER, "10.3.0.1"),))
OUTER_LINK = KernelRoute(IPv4Network("10.3.0.0/24"), (KernelHop(OUTER, None),))
INNER_LINK = KernelRoute(IPv4Network("10.2.0.0/24"), (KernelHop(INNER, None),))
GATEWAY = Nexthop(1, "10.3.0.1")
ENDPOINT = Nexthop(2, "10.2.0.2")


def link(index: int, up: bool = True, mtu: int = 1500) -> Link:
    return Link(index, f"eth{index}", OUR_MAC, up, mtu)


@pytest.fixture
def network() -> Network:
    found = Network(PORTS)
    for index in PORTS:
        found.set_link(link(index))
    for route in (DEFAULT, OUTER_LINK, INNER_LINK):
        found.set_route(route)
    found.set_neighbour(OUTER, "10.3.0.1", MAC)
    found.set_neighbour(INNER, "10.2.0.2", MAC)
    return found


def test_an_entry_gets_both_macs_and_the_mtu(network: Network) -> None:
    network.set_link(link(INNER, mtu=1450))
    assert network.resolve(ENDPOINT) == Nexthop(2, "10.2.0.2", True, 1450, OUR_MAC, MAC)


def test_without_a_mac_an_entry_is_not_valid() -> None:
    network = Network(PORTS)
    network.set_link(link(INNER))
    network.set_route(INNER_LINK)
    assert not network.resolve(ENDPOINT).valid


def test_a_neighbour_that_fails_keeps_its_last_mac(network: Network) -> None:
    network.set_neighbour(INNER, "10.2.0.2", None)
    assert network.is_failed(INNER, "10.2.0.2")
    entry = network.resolve(ENDPOINT)
    assert (entry.valid, entry.destination_mac) == (True, MAC)
    network.set_neighbour(INNER, "10.2.0.2", OUR_MAC)
    assert not network.is_failed(INNER, "10.2.0.2")
    assert network.resolve(ENDPOINT).destination_mac == OUR_MAC


def test_an_adopted_entry_keeps_the_mac_of_an_earlier_daemon() -> None:
    network = Network(PORTS)
    network.set_link(link(INNER))
    network.set_route(INNER_LINK)
    adopted = Nexthop(2, "10.2.0.2", False, 1500, OUR_MAC, MAC)
    assert not network.resolve(adopted).valid
    network.adopt(adopted)
    assert network.resolve(adopted).valid


def test_link_down_and_up(network: Network) -> None:
    assert network.set_link(link(INNER, up=False))
    assert not network.resolve(ENDPOINT).valid
    assert network.resolve(GATEWAY).valid
    assert network.set_link(link(INNER))
    assert network.resolve(ENDPOINT).valid
    assert not network.set_link(link(INNER, mtu=1400)), "only a link that moved takes routes along"


def test_a_link_that_is_gone(network: Network) -> None:
    network.drop_link(INNER)
    assert not network.resolve(ENDPOINT).valid


def test_a_lost_gateway_is_not_valid_though_it_is_on_the_link(network: Network) -> None:
    assert network.resolve(GATEWAY).valid
    network.drop_route(DEFAULT)
    assert not network.resolve(GATEWAY).valid


def test_a_replaced_default_route_moves_to_its_new_gateway(network: Network) -> None:
    network.table()
    hop = KernelHop(OUTER, "10.3.0.9")
    network.set_route(KernelRoute(DEFAULT.network, (hop,)), replaces=True)
    assert network.table().find("8.8.8.8") == Way(1, "10.3.0.9", 1500)
    assert not network.resolve(GATEWAY).valid


def test_a_host_on_the_link_that_never_was_a_gateway(network: Network) -> None:
    network.set_neighbour(OUTER, "10.3.0.77", MAC)
    assert network.resolve(Nexthop(1, "10.3.0.77")).valid
    network.set_neighbour(OUTER, "10.3.0.1", OUR_MAC)
    network.drop_route(OUTER_LINK)
    assert network.resolve(Nexthop(1, "10.3.0.77")).destination_mac == OUR_MAC, "now by the default"
    network.drop_route(DEFAULT)
    assert not network.resolve(Nexthop(1, "10.3.0.77")).valid


def test_dead_hops_are_not_used(network: Network) -> None:
    dead = KernelRoute(DEFAULT.network, (KernelHop(OUTER, "10.3.0.1", dead=True),))
    network.set_route(dead)
    assert network.table().find("8.8.8.8") is None


def test_unreachable_routes_hide_wider_ones(network: Network) -> None:
    network.set_route(KernelRoute(IPv4Network("198.51.100.0/24"), ()))
    assert network.table().find("198.51.100.7") is None


def test_interfaces_without_the_program_have_port_0(network: Network) -> None:
    network.set_route(KernelRoute(IPv4Network("192.0.2.0/24"), (KernelHop(99, "10.4.0.1"),)))
    assert network.table().find("192.0.2.1") == Way(0, "10.4.0.1", 1500)


def test_mtu_of_a_route(network: Network) -> None:
    network.set_route(KernelRoute(IPv4Network("192.0.2.0/24"), DEFAULT.hops, mtu=1400))
    assert network.table().find("192.0.2.1") == Way(1, "10.3.0.1", 1400)


def test_the_mtu_of_a_route_is_that_of_its_nexthop(network: Network) -> None:
    network.set_route(KernelRoute(DEFAULT.network, DEFAULT.hops, mtu=1400), replaces=True)
    network.set_route(KernelRoute(INNER_LINK.network, INNER_LINK.hops, mtu=1450), replaces=True)
    assert (network.resolve(GATEWAY).mtu, network.resolve(ENDPOINT).mtu) == (1400, 1450)
    network.set_link(link(INNER, mtu=1300))
    assert network.resolve(ENDPOINT).mtu == 1300


def test_forgotten_routes(network: Network) -> None:
    network.forget_routes()
    assert network.table().find("10.2.0.2") is None


def test_tags_are_those_of_the_port() -> None:
    network = Network(PORTS, {2: (100, 7)})
    network.set_link(link(INNER))
    assert network.resolve(ENDPOINT).tags == (100, 7)


V6 = IPv6Network("2001:db8::/32")
FIRST, SECOND, THIRD = (KernelHop(OUTER, f"fe80::{n}") for n in (1, 2, 3))


def ways(network: Network) -> set[str | None]:
    return {hop.gateway for route in network.entries() for hop in route.hops if route.network == V6}


def test_ipv6_announces_an_added_hop_as_the_whole_and_a_lost_one_as_itself(
    network: Network,
) -> None:
    network.set_route(KernelRoute(V6, (FIRST,), 1024))
    network.set_route(KernelRoute(V6, (SECOND, FIRST), 1024))
    assert ways(network) == {"fe80::1", "fe80::2"}
    network.drop_route(KernelRoute(V6, (FIRST,), 1024))
    assert ways(network) == {"fe80::2"}
    network.drop_route(KernelRoute(V6, (SECOND,), 1024))
    assert ways(network) == set()


def test_ipv6_routes_of_one_place_share_the_load(network: Network) -> None:
    network.set_route(KernelRoute(V6, (FIRST,), 1024))
    network.set_route(KernelRoute(V6, (SECOND,), 1024))
    assert ways(network) == {"fe80::1", "fe80::2"}
    network.set_neighbour(OUTER, "fe80::1", None)
    assert ways(network) == {"fe80::2"}
    network.set_route(KernelRoute(V6, (THIRD,), 1024), replaces=True)
    assert ways(network) == {"fe80::3"}


def test_an_unreachable_route_outlives_one_of_its_place(network: Network) -> None:
    network.set_route(KernelRoute(V6, (), 1024))
    network.set_route(KernelRoute(V6, (FIRST,), 1024))
    network.drop_route(KernelRoute(V6, (FIRST,), 1024))
    assert [route.hops for route in network.entries() if route.network == V6] == [()]


def test_only_the_state_of_a_gateway_beside_others_changes_routes(network: Network) -> None:
    network.table()
    assert not network.set_neighbour(OUTER, "10.3.0.1", None)
    assert network.table().find("8.8.8.8") == Way(1, "10.3.0.1", 1500), "the only one stays in use"
    hops = tuple(KernelHop(OUTER, f"10.3.0.{n}") for n in (1, 2))
    network.set_route(KernelRoute(DEFAULT.network, hops), replaces=True)
    assert network.table().find("8.8.8.8") == Way(1, "10.3.0.2", 1500)
    assert network.set_neighbour(OUTER, "10.3.0.1", MAC)
    assert not network.set_neighbour(OUTER, "10.3.0.1", OUR_MAC)


def test_the_widest_network_that_a_gateway_served_tells_who_took_over(network: Network) -> None:
    narrow = KernelRoute(IPv4Network("192.0.2.0/24"), DEFAULT.hops)
    network.set_route(narrow)
    network.table()
    network.drop_route(narrow)
    network.set_route(KernelRoute(narrow.network, (KernelHop(OUTER, "10.3.0.8"),)))
    network.set_route(KernelRoute(DEFAULT.network, (KernelHop(INNER, "10.2.0.9"),)), replaces=True)
    assert network.stand_in(1, "10.3.0.1") == Way(2, "10.2.0.9", 1500)
    network.set_route(KernelRoute(DEFAULT.network, (KernelHop(INNER, None),)), replaces=True)
    assert network.stand_in(1, "10.3.0.1") is None, "an attached network has no one gateway"


def test_a_gateway_of_a_lost_route_gives_way_to_a_wider_route(network: Network) -> None:
    narrow = KernelRoute(IPv4Network("192.0.2.0/24"), (KernelHop(INNER, "10.2.0.9"),))
    network.set_route(narrow)
    network.table()
    network.drop_route(narrow)
    assert network.stand_in(2, "10.2.0.9") == Way(1, "10.3.0.1", 1500)


def test_a_link_that_is_gone_takes_its_neighbours_along(network: Network) -> None:
    network.drop_link(INNER)
    network.set_link(link(INNER))
    assert not network.resolve(ENDPOINT).valid
