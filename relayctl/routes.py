"""Routes and nexthop numbers: where does a packet for this host leave, and under which index?

Pure. `Routes` is a longest-prefix copy of the kernel's IPv4 main table, so that no new flow costs a
netlink call; `NexthopIndex` gives each gateway the number that flows store. Not here: netlink
(`nexthops`), and policy routing, which the copy does not know.
"""

import ipaddress
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relayctl.datapath.base import NEXTHOPS, Nexthop

_CACHE = 65536  # hosts remembered between two changes of the table


@dataclass(frozen=True, slots=True)
class Hop:
    """One way out. `port` is the egress port number, 0 where the program is not attached;
    `gateway` is None for a network on the link."""

    port: int
    gateway: str | None
    mtu: int = 1500


@dataclass(frozen=True, slots=True)
class Route:
    """One entry of the kernel's table; several hops are equal-cost ways."""

    network: ipaddress.IPv4Network
    hops: tuple[Hop, ...]
    metric: int = 0


@dataclass(frozen=True, slots=True)
class Way:
    """What a host resolves to: the neighbour to hand its packets to."""

    port: int
    gateway: str
    mtu: int


class Routes:
    """Longest-prefix match; among equal prefixes the lowest metric wins."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self._levels: list[tuple[int, dict[int, Route]]] = []  # mask, network → route
        self._cache: dict[str, Way | None] = {}
        self._gateways: set[tuple[int, str]] = set()
        levels: dict[int, dict[int, Route]] = {}
        for route in routes:
            self._gateways.update((hop.port, hop.gateway) for hop in route.hops if hop.gateway)
            level = levels.setdefault(route.network.prefixlen, {})
            network = int(route.network.network_address)
            known = level.get(network)
            if known is None or route.metric < known.metric:
                level[network] = route
        for length in sorted(levels, reverse=True):
            mask = (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF
            self._levels.append((mask, levels[length]))

    def find(self, host: str) -> Way | None:
        """The way towards `host` (IPv4 text), or None without a route."""
        if host in self._cache:
            return self._cache[host]
        if len(self._cache) >= _CACHE:
            self._cache.clear()
        way = self._cache[host] = self._match(host)
        return way

    def uses(self, port: int, gateway: str) -> bool:
        """Whether some route leads over that neighbour as its gateway."""
        return (port, gateway) in self._gateways

    def on_link(self, port: int, host: str) -> bool:
        """Whether `host` is itself a neighbour on that port."""
        way = self.find(host)
        return way is not None and (way.port, way.gateway) == (port, host)

    def _match(self, host: str) -> Way | None:
        number = int(ipaddress.IPv4Address(host))
        for mask, level in self._levels:
            route = level.get(number & mask)
            if route is not None:
                hop = _rendezvous(host, route.hops)
                return Way(hop.port, hop.gateway or host, hop.mtu) if hop else None
        return None


def _rendezvous(host: str, hops: tuple[Hop, ...]) -> Hop | None:
    """Equal-cost ways: each host keeps its own as long as that one lives."""
    if len(hops) < 2:
        return hops[0] if hops else None
    return max(hops, key=lambda hop: zlib.crc32(f"{host} {hop.port} {hop.gateway}".encode()))


class NexthopIndex:
    """Numbers of the neighbours in use. One owner: the packet process, which installs flows."""

    def __init__(self, used: Mapping[int, Nexthop]) -> None:
        """`used` is what the table holds already: a restart keeps the numbers that flows store."""
        self._index = {(hop.port, hop.gateway): index for index, hop in used.items()}
        self._free = [index for index in range(NEXTHOPS - 1, 0, -1) if index not in used]
        self._touched: dict[int, int] = {}  # index → stamp of its last use

    def __len__(self) -> int:
        return len(self._index)

    def find(self, way: Way, now: int) -> int | None:
        """The number of a known neighbour, or None. `now` in units."""
        index = self._index.get((way.port, way.gateway))
        if index is not None:
            self._touched[index] = now
        return index

    def reserve(self, way: Way, now: int) -> int:
        """A number for a new neighbour; 0 when all are taken."""
        if not self._free:
            return 0
        index = self._free.pop()
        self._index[way.port, way.gateway] = index
        self._touched[index] = now
        return index

    def release(self, index: int, now: int, unused_for: int) -> bool:
        """Take a number back, unless it was used within the last `unused_for` units."""
        if now - self._touched.get(index, 0) <= unused_for:
            return False
        for key, known in self._index.items():
            if known == index:
                del self._index[key]
                self._touched.pop(index, None)
                self._free.append(index)
                return True
        return False
