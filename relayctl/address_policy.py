"""Which addresses no client and no endpoint can have.

Pure. A request in the name of an inner host would make a transceiver's answer arrive inside our
network from our own VIP; one in the name of a VIP would go in circles. The XDP program has the same
rules compiled in; this copy serves the packet process.
"""

import ipaddress
from collections.abc import Collection, Iterable

from relayctl.wire.address import Address, pack_host
from relayctl.wire.cluster import Cluster, Clusters, Network

_Range = tuple[int, int]  # mask and network, as 128-bit numbers; IPv4 is mapped


def _range(network: Network) -> _Range:
    length = network.prefixlen + (96 if network.version == 4 else 0)
    mask = (1 << 128) - (1 << (128 - length))
    return mask, _number(str(network.network_address)) & mask


def _number(host: str) -> int:
    return int.from_bytes(pack_host(host), "big")  # remembered there: no second parse


_NEVER = tuple(
    _range(ipaddress.ip_network(text))
    for text in (
        "0.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/3",  # multicast and reserved, up to broadcast
        "fe80::/10",
        "ff00::/8",
        "::/128",
    )
)
_LOOPBACK = tuple(_range(ipaddress.ip_network(text)) for text in ("127.0.0.0/8", "::1/128"))
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
            never.extend(_LOOPBACK)
            never.extend(_range(ipaddress.ip_network(host)) for host, _ in sockets)
        self._allowed = tuple(_range(network) for cluster in clusters for network in cluster.allow)
        self._never = tuple(never)
        self._never_clients = (*never, *(() if local or inner_clients else self._allowed))
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
            refused = self._clients[host] = _within(host, self._never_clients)
        return refused or not port or client in self._sockets

    def is_inside(self, host: str) -> bool:
        """Whether some allow-list holds the host, at whatever port."""
        inside = self._inside.get(host)
        if inside is None:
            if len(self._inside) >= _CACHE:
                self._inside.clear()
            inside = self._inside[host] = _within(host, self._allowed)
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
        if endpoint in self._sockets or _within(endpoint[0], self._never):
            return None
        return self._clusters.owner(endpoint)


def _within(host: str, ranges: Iterable[_Range]) -> bool:
    number = _number(host)
    for mask, network in ranges:  # noqa: SIM110 - runs once per first packet
        if number & mask == network:
            return True
    return False
