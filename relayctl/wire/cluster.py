"""Clusters: which endpoints a route token may lead to.

A token carries 32 bits of the endpoint's address; the cluster adds the 96-bit prefix and says
which networks and ports are allowed at all.
"""

import enum
import functools
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from relayctl.wire.address import Address, pack_host, unpack_host
from relayctl.wire.route_token import Route

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_CACHE = 65536  # endpoints remembered

IPV4_PREFIX = ipaddress.IPv6Network("::ffff:0:0/96")


class Refusal(enum.StrEnum):
    """Why an authentic token leads nowhere."""

    UNKNOWN_CLUSTER = "unknown_cluster"
    NOT_ALLOWED = "not_allowed"


class RouteError(ValueError):
    def __init__(self, reason: Refusal, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


@dataclass(frozen=True)
class Cluster:
    """Transceivers that share an id and a /96 prefix."""

    id: int
    allow: tuple[Network, ...]
    prefix: ipaddress.IPv6Network = IPV4_PREFIX
    ports: tuple[int, int] = (1024, 65535)  # first and last allowed

    def allows(self, endpoint: Address) -> bool:
        host, port = endpoint
        return self.ports[0] <= port <= self.ports[1] and _is_inside(host, self.allow)


@functools.lru_cache(maxsize=4096)
def _is_inside(host: str, networks: tuple[Network, ...]) -> bool:
    ip = ipaddress.ip_address(host)
    return any(ip in network for network in networks)


class Clusters:
    """Every cluster we route to."""

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        self._by_id = {cluster.id: cluster for cluster in clusters}
        self._endpoints: dict[tuple[int, int, int], Address] = {}

    def endpoint(self, route: Route) -> Address:
        """The endpoint that an opened token names. Raises `RouteError`."""
        known = self._endpoints.get(route[:3])
        if known is None:
            if len(self._endpoints) >= _CACHE:
                self._endpoints.clear()
            known = self._endpoints[route[:3]] = self._endpoint(route)
        return known

    def _endpoint(self, route: Route) -> Address:
        cluster = self._by_id.get(route.cluster)
        if cluster is None:
            raise RouteError(Refusal.UNKNOWN_CLUSTER, f"cluster {route.cluster}")
        packed = cluster.prefix.network_address.packed[:12] + route.host.to_bytes(4, "big")
        endpoint = unpack_host(packed), route.port
        if not cluster.allows(endpoint):
            raise RouteError(Refusal.NOT_ALLOWED, f"{endpoint[0]} port {endpoint[1]}")
        return endpoint

    def owner(self, endpoint: Address) -> int | None:
        """Id of the cluster whose allow-list holds `endpoint`, or None."""
        packed = pack_host(endpoint[0])
        for cluster in self._by_id.values():
            if packed[:12] == cluster.prefix.network_address.packed[:12] and cluster.allows(
                endpoint
            ):
                return cluster.id
        return None
