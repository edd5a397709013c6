import ipaddress

import pytest

from relayctl.wire.cluster import Cluster, Clusters, Refusal, RouteError
from relayctl.wire.route_token import Route

INNER = ipaddress.ip_network("10.2.0.0/24")
CLUSTERS = Clusters(
    [
        Cluster(7, (INNER,), ports=(5000, 5999)),
        Cluster(
            8,
            (ipaddress.ip_network("fd00:2::/112"),),
            ipaddress.IPv6Network("fd00:2::/96"),
        ),
    ]
)


def route(cluster: int, host: str, port: int) -> Route:
    return Route(cluster, int(ipaddress.IPv4Address(host)), port, bytes(3))


def test_endpoint_is_prefix_plus_host() -> None:
    assert CLUSTERS.endpoint(route(7, "10.2.0.2", 5000)) == ("10.2.0.2", 5000)
    assert CLUSTERS.endpoint(Route(8, 9, 5000, bytes(3))) == ("fd00:2::9", 5000)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        pytest.param(route(9, "10.2.0.2", 5000), Refusal.UNKNOWN_CLUSTER, id="cluster"),
        pytest.param(route(7, "10.2.1.2", 5000), Refusal.NOT_ALLOWED, id="network"),
        pytest.param(route(7, "169.254.169.254", 5000), Refusal.NOT_ALLOWED, id="metadata"),
        pytest.param(route(7, "10.2.0.2", 4999), Refusal.NOT_ALLOWED, id="port_below"),
        pytest.param(route(7, "10.2.0.2", 6000), Refusal.NOT_ALLOWED, id="port_above"),
        pytest.param(Route(8, 0x10000, 5000, bytes(3)), Refusal.NOT_ALLOWED, id="ipv6_network"),
    ],
)
def test_endpoint_refuses(bad: Route, reason: Refusal) -> None:
    with pytest.raises(RouteError) as caught:
        CLUSTERS.endpoint(bad)
    assert caught.value.reason is reason


def test_owner_needs_network_port_and_prefix() -> None:
    assert CLUSTERS.owner(("10.2.0.200", 5999)) == 7
    assert CLUSTERS.owner(("fd00:2::1", 2000)) == 8
    assert CLUSTERS.owner(("10.2.0.200", 1024)) is None
    assert CLUSTERS.owner(("10.3.0.1", 5000)) is None
