"""Which addresses no client and no endpoint can have.

Pure. A request in the name of an inner host would make a transceiver's answer arrive inside our
network from our own VIP; one in the name of a VIP would go in circles. The XDP program has the same
rules compiled in; this copy serves the packet process.
"""

import ipaddress
from collections.abc import Collection, Iterable

from relayctl.wire.address import Address, is_v6, pack_host
from relayctl.wire.cluster import Cluster, Clusters, Network


class _Ranges:
    """Networks of both families. Numbers have 128 bits; an IPv4 address is a mapped one."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._v4: list[tuple[int, int]] = []  # mask, network
        self._v6: list[tuple[int, int]] = []
        for network in networks:
            length = network.prefixlen + (96 if network.version == 4 else 0)
            mask = (1 << 128) - (1 << (128 - length))
            base = int.from_bytes(pack_host(str(network.network_address)), "big")
            (self._v4 if network.version == 4 else self._v6).append((mask, base))

    def hold(self, host: str) -> bool:
        number = int.from_bytes(pack_host(host), "big")
        for mask, base in self._v6 if is_v6(host) else self._v4:  # noqa: SIM110 - once per client
            if number & mask == base:
                return True
        return False


def _networks(*texts: str) -> list[Network]:
    return [ipaddress.ip_network(text) for text in texts]


_NEVER = _networks(
    "0.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/3",  # multicast and reserved, up to broadcast
    "::/128",
    "::ffff:0:0/96",  # IPv4 in disguise: it would pose as an IPv4 client behind SPP
    "fe80::/10",
    "ff00::/8",
)
_LOOPBACK = _networks("127.0.0.0/8", "::1/128")
_CACHE = 65536  # addresses whose verdict is remembered


class AddressPolicy:
    """Tells who may be a client and who may be an endpoint.

    `sockets` are our own VIPs and inner ports. `inner_clients` lets clients live inside an
    allow-list (labs); `local` lets everybody live on this host (laptops).
    """

    def __init__(
        self,
        clusters: Iterable[Cluster],
        sockets: Collection[Address],
        *,
        inner_clients: bool = False,
        local: bool = False,
    ) -> None:
        clusters = tuple(clusters)
        never = list(_NEVER)
        if not local:
            never += _LOOPBACK
            never += _networks(*(host for host, _ in sockets))
        allowed = [network for cluster in clusters for network in cluster.allow]
        self._allowed = _Ranges(allowed)
        self._never = _Ranges(never)
        self._never_clients = _Ranges(never if local or inner_clients else never + allowed)
        self._clusters = Clusters(clusters)
        self._sockets = frozenset(sockets)
        self._clients: dict[str, bool] = {}  # host → refused
        self._inside: dict[str, bool] = {}
        self._owners: dict[Address, int | None] = {}

    def refuses(self, client: Address) -> bool:
        """Whether no client can have this address."""
        host, port = client
        refused = self._clients.get(host)
        if refused is None:
            if len(self._clients) >= _CACHE:
                self._clients.clear()
            refused = self._clients[host] = self._never_clients.hold(host)
        return refused or not port or client in self._sockets

    def is_inside(self, host: str) -> bool:
        """Whether some allow-list holds the host, at whatever port."""
        inside = self._inside.get(host)
        if inside is None:
            if len(self._inside) >= _CACHE:
                self._inside.clear()
            inside = self._inside[host] = self._allowed.hold(host)
        return inside

    def owner(self, endpoint: Address) -> int | None:
        """Id of the cluster that may have this endpoint, or None."""
        if endpoint in self._owners:
            return self._owners[endpoint]
        if len(self._owners) >= _CACHE:
            self._owners.clear()
        owner = self._owners[endpoint] = self._owner(endpoint)
        return owner

    def _owner(self, endpoint: Address) -> int | None:
        if endpoint in self._sockets or self._never.hold(endpoint[0]):
            return None
        return self._clusters.owner(endpoint)
