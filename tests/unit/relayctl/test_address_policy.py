import ipaddress

import pytest

from relayctl.address_policy import AddressPolicy
from relayctl.wire.address import Address, pack
from relayctl.wire.cluster import Cluster

CLUSTER = Cluster(7, (ipaddress.ip_network("10.2.0.0/24"),))
CLUSTER_6 = Cluster(
    9, (ipaddress.ip_network("fd00:2::/112"),), prefix=ipaddress.IPv6Network("fd00:2::/96")
)
CLUSTERS = [CLUSTER, CLUSTER_6]
SOCKETS = [
    *(("203.0.113.10", 3478), ("10.2.0.1", 5100)),
    *(("2001:db8:10::10", 3478), ("fd00:3::1", 5100), ("fd00:2::1", 5100)),
]
LOCAL = Cluster(7, (ipaddress.ip_network("127.0.0.0/8"),))
LOCAL_SOCKETS = [("127.0.0.1", 3478), ("127.0.0.1", 5100)]


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(("10.2.0.9", 4000), id="inside"),
        pytest.param(("203.0.113.10", 4000), id="vip"),
        pytest.param(("10.2.0.1", 4000), id="ourselves"),
        pytest.param(("127.0.0.1", 4000), id="loopback"),
        pytest.param(("169.254.1.1", 4000), id="link_local"),
        pytest.param(("224.0.0.1", 4000), id="multicast"),
        pytest.param(("255.255.255.255", 4000), id="broadcast"),
        pytest.param(("0.0.0.1", 4000), id="this_network"),
        pytest.param(("198.51.100.7", 0), id="port_0"),
        pytest.param(("fd00:2::9", 4000), id="inside_6"),
        pytest.param(("2001:db8:10::10", 4000), id="vip_6"),
        pytest.param(("fd00:3::1", 4000), id="ourselves_6"),
        pytest.param(("::1", 4000), id="loopback_6"),
        pytest.param(("::", 4000), id="unspecified"),
        pytest.param(("fe80::1", 4000), id="link_local_6"),
        pytest.param(("febf:ffff::1", 4000), id="link_local_end"),
        pytest.param(("ff02::1", 4000), id="multicast_6"),
        pytest.param(("::ffff:198.51.100.7", 4000), id="ipv4_in_disguise"),
    ],
)
def test_no_client_has_such_an_address(client: Address) -> None:
    assert AddressPolicy(CLUSTERS, SOCKETS).refuses(pack(client))


def test_clients() -> None:
    policy = AddressPolicy(CLUSTERS, SOCKETS)
    assert not policy.refuses(pack(("198.51.100.7", 4000)))
    assert not policy.refuses(pack(("10.1.0.2", 4000)))
    assert not policy.refuses(pack(("2001:db8::7", 4000)))
    assert not policy.refuses(pack(("fec0::1", 4000)))
    assert not policy.refuses(pack(("::198.51.100.7", 4000)))


def test_inner_clients_only_in_labs() -> None:
    policy = AddressPolicy(CLUSTERS, SOCKETS, inner_clients=True)
    assert not policy.refuses(pack(("10.2.0.9", 4000)))
    assert policy.refuses(pack(("10.2.0.1", 4000)))
    assert policy.refuses(pack(("127.0.0.1", 4000)))


def test_on_a_laptop_everybody_is_on_loopback_but_our_own_sockets() -> None:
    policy = AddressPolicy([LOCAL], LOCAL_SOCKETS, local=True)
    assert not policy.refuses(pack(("127.0.0.1", 4000)))
    assert policy.owner(("127.0.0.1", 4000)) == 7
    assert policy.refuses(pack(("127.0.0.1", 3478)))
    assert policy.owner(("127.0.0.1", 5100)) is None


def test_no_client_has_an_address_of_this_host() -> None:
    policy = AddressPolicy(CLUSTERS, SOCKETS, inner_clients=True)
    policy.take_own(["198.51.100.7", "10.2.0.2", "2001:db8::7"])
    for host in ("198.51.100.7", "10.2.0.2", "2001:db8::7", "203.0.113.10"):
        assert policy.refuses(pack((host, 4000)))
    assert policy.owner(("10.2.0.2", 5000)) == 7, "an endpoint may share this host"
    policy.take_own(["198.51.100.8"])
    assert not policy.refuses(pack(("198.51.100.7", 4000)))
    assert policy.refuses(pack(("198.51.100.8", 4000)))


def test_on_a_laptop_clients_share_this_host() -> None:
    policy = AddressPolicy([LOCAL], LOCAL_SOCKETS, local=True)
    policy.take_own(["127.0.0.1", "192.0.2.1"])
    assert not policy.refuses(pack(("127.0.0.1", 4000)))
    assert not policy.refuses(pack(("192.0.2.1", 4000)))


def test_networks_nest_and_reach_the_ends() -> None:
    nested = ["0.0.0.0/1", "64.0.0.0/8", "64.0.0.0/32", "255.255.255.255/32", "ff00::/8", "::/0"]
    policy = AddressPolicy([Cluster(7, tuple(map(ipaddress.ip_network, nested)))], [])
    for host in ("1.0.0.0", "64.0.0.0", "65.0.0.0", "127.255.255.255", "255.255.255.255", "::9"):
        assert policy.is_inside(host)
    for host in ("128.0.0.0", "255.255.255.254"):
        assert not policy.is_inside(host)


@pytest.mark.parametrize(
    ("endpoint", "owner"),
    [
        (("10.2.0.2", 5000), 7),
        (("10.2.0.2", 1023), None),
        (("10.3.0.2", 5000), None),
        (("10.2.0.1", 5000), None),
        (("10.2.0.1", 5100), None),
        (("fd00:2::2", 5000), 9),
        (("fd00:2::1:2", 5000), None),
        (("fd00:2::1", 5000), None),
        (("::10.2.0.2", 5000), None),
    ],
)
def test_endpoints(endpoint: Address, owner: int | None) -> None:
    policy = AddressPolicy(CLUSTERS, SOCKETS)
    assert policy.owner(endpoint) == owner
    assert policy.owner(endpoint) == owner  # remembered


def test_inside_is_about_hosts() -> None:
    policy = AddressPolicy(CLUSTERS, SOCKETS)
    assert policy.is_inside("10.2.0.2")
    assert policy.is_inside("fd00:2::ffff")
    assert not policy.is_inside("10.3.0.2")
    assert not policy.is_inside("fd00:2::1:0")
    assert policy.is_inside("10.2.0.2")
