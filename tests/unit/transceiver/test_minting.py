import ipaddress
from collections.abc import Callable

import pytest

from relayctl.wire.cluster import Cluster, Clusters
from relayctl.wire.route_token import Key, open_token
from transceiver.minting import NONCE_LIFE_S, Minter, MintingError

KEY = Key(1, bytes(range(32)))
ENDPOINT = ("10.2.0.2", 5000)


def source(*nonces: bytes) -> Callable[[int], bytes]:
    left = list(nonces)
    return lambda size: left.pop(0)


def test_a_token_leads_back_to_the_endpoint() -> None:
    token = Minter(KEY, 7, ENDPOINT, source(b"abc")).mint(0.0)
    route = open_token({1: KEY}, token.encode())
    clusters = Clusters([Cluster(7, (ipaddress.ip_network("10.2.0.0/24"),))])
    assert clusters.endpoint(route) == ENDPOINT
    assert route.nonce == b"abc"


def test_no_nonce_comes_twice_within_its_life() -> None:
    minter = Minter(KEY, 7, ENDPOINT, source(b"aaa", b"aaa", b"aaa", b"bbb"))
    assert minter.mint(0.0) != minter.mint(NONCE_LIFE_S - 1)


def test_a_nonce_may_come_again_after_its_life() -> None:
    minter = Minter(KEY, 7, ENDPOINT, source(b"aaa", b"aaa"))
    assert minter.mint(0.0) == minter.mint(NONCE_LIFE_S)


def test_an_ipv6_endpoint_lies_in_the_prefix_of_its_cluster() -> None:
    prefix = ipaddress.IPv6Network("2001:db8:5::/96")
    packed = prefix.network_address.packed[:12]
    minter = Minter(KEY, 9, ("2001:db8:5::a02:2", 5000), source(b"abc"), packed)
    route = open_token({1: KEY}, minter.mint(0.0).encode())
    assert (route.cluster, route.host) == (9, 0x0A020002)


def test_an_endpoint_outside_the_prefix_is_refused() -> None:
    with pytest.raises(MintingError, match="cluster_prefix"):
        Minter(KEY, 7, ("2001:db8::1", 5000), source())
