"""Which addresses no client and no endpoint can have.

Pure. A request in the name of an inner host would make a transceiver's answer arrive inside our
network from our own VIP; one in the name of a VIP would go in circles. The XDP program has the same
rules compiled in; this copy serves the packet process.
"""

import ipaddress
from bisect import bisect_right
from collections.abc import Collection, Iterable

from relayctl.wire.address import Address, compact, pack
from relayctl.wire.cluster import Cluster, Clusters, Network


class _Ranges:
    """Networks of both families."""

    def __init__(self, networks: Iterable[Network]) -> None:
        # by the size of an address: where networks begin and where they end. Two of them are apart,
        # or one holds the other, which then is left out
        self._spans: dict[int, tuple[list[bytes], list[bytes]]] = {4: ([], []), 16: ([], [])}
        for first, last in sorted((net[0].packed, net[-1].packed) for net in networks):
            if not self.hold(last):
                begins, ends = self._spans[len(first)]
                begins.append(first)
                ends.append(last)

    def hold(self, host: bytes) -> bool:
        """`host` is a compact address."""
        begins, ends = self._spans[len(host)]
        at = bisect_right(begins, host)
        return at > 0 and host <= ends[at - 1]


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
_NO_PORT = bytes(2)
_CACHE = 65536  # endpoints whose owner is remembered


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
        self._not_clients = never if local or inner_clients else never + allowed
        self._never_clients = _Ranges(self._not_clients)
        self._local = local
        self._clusters = Clusters(clusters)
        self._sockets = frozenset(map(pack, sockets))
        self._owners: dict[Address, int | None] = {}

    def take_own(self, hosts: Iterable[str]) -> None:
        """All addresses that this host has now: nobody else can be a client with one of them."""
        if not self._local:
            self._never_clients = _Ranges([*self._not_clients, *_networks(*hosts)])

    def refuses(self, client: bytes) -> bool:
        """Whether no client can have this packed address."""
        return (
            self._never_clients.hold(client[:-2])
            or client[-2:] == _NO_PORT
            or client in self._sockets
        )

    def is_inside(self, host: str) -> bool:
        """Whether some allow-list holds the host, at whatever port."""
        return self._allowed.hold(compact(host))

    def owner(self, endpoint: Address) -> int | None:
        """Id of the cluster that may have this endpoint, or None."""
        if endpoint in self._owners:
            return self._owners[endpoint]
        if len(self._owners) >= _CACHE:
            self._owners.clear()
        owner = self._owners[endpoint] = self._owner(endpoint)
        return owner

    def _owner(self, endpoint: Address) -> int | None:
        if pack(endpoint) in self._sockets or self._never.hold(compact(endpoint[0])):
            return None
        return self._clusters.owner(endpoint)
