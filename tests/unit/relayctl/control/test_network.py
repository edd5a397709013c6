from ipaddress import IPv4Network

import pytest

from relayctl.control.network import KernelHop, KernelRoute, Link, Network
from relayctl.datapath.base import Nexthop
from relayctl.routes import Way

OUTER, INNER = 11, 12  # interface indices
PORTS = {OUTER: 1, INNER: 2}
MAC = bytes.fromhex("020000000001")
OUR_MAC = bytes.fromhex("0200000000aa")
DEFAULT = KernelRoute(IPv4Network("0.0.0.0/0"), (KernelHop(OUTER, "10.3.0.1"),))
OUTER_LINK = KernelRoute(IPv4Network("10.3.0.0/24"), (KernelHop(OUTER, None),))
INNER_LINK = KernelRoute(IPv4Network("10.2.0.0/24"), (KernelHop(INNER, None),))
GATEWAY = Nexthop(1, "10.3.0.1", "10.2.0.1")
ENDPOINT = Nexthop(2, "10.2.0.2", "10.2.0.1")


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
    assert network.resolve(ENDPOINT) == Nexthop(2, "10.2.0.2", "10.2.0.1", True, 1450, OUR_MAC, MAC)


def test_without_a_mac_an_entry_is_not_valid() -> None:
    network = Network(PORTS)
    network.set_link(link(INNER))
    network.set_route(INNER_LINK)
    assert not network.resolve(ENDPOINT).valid


def test_a_neighbour_that_fails_keeps_its_last_mac(network: Network) -> None:
    network.set_neighbour(INNER, "10.2.0.2", None)
    assert network.is_failed(ENDPOINT)
    entry = network.resolve(ENDPOINT)
    assert (entry.valid, entry.destination_mac) == (True, MAC)
    network.set_neighbour(INNER, "10.2.0.2", OUR_MAC)
    assert not network.is_failed(ENDPOINT)
    assert network.resolve(ENDPOINT).destination_mac == OUR_MAC


def test_an_adopted_entry_keeps_the_mac_of_an_earlier_daemon() -> None:
    network = Network(PORTS)
    network.set_link(link(INNER))
    network.set_route(INNER_LINK)
    adopted = Nexthop(2, "10.2.0.2", "10.2.0.1", False, 1500, OUR_MAC, MAC)
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
    assert network.resolve(Nexthop(1, "10.3.0.77", "10.2.0.1")).valid
    network.drop_route(OUTER_LINK)
    assert not network.resolve(Nexthop(1, "10.3.0.77", "10.2.0.1")).valid


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


def test_forgotten_routes(network: Network) -> None:
    network.forget_routes()
    assert network.table().find("10.2.0.2") is None
