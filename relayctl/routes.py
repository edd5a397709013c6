"""Routes and nexthop numbers: where does a packet for this host leave, and under which index?

Pure. `Routes` is a longest-prefix copy of the kernel's main tables, IPv4 and IPv6, so that no new
flow costs a netlink call; `NexthopIndex` gives each gateway the number that flows store. Not here:
netlink (`nexthops`), and policy routing, which the copy does not know.
"""

import ipaddress
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from relayctl.datapath.base import NEXTHOPS, Nexthop
from relayctl.wire.address import compact, unpack_host, widened

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_BITS = {4: 32, 6: 128}  # of an address, by IP version


@dataclass(frozen=True, slots=True)
class Hop:
    """One way out. `port` is the egress port number, 0 where the program is not attached;
    `gateway` is None for a network on the link. A link-local gateway is that of its port."""

    port: int
    gateway: str | None
    mtu: int = 1500


class Way(NamedTuple):
    """What a host resolves to: the neighbour to hand its packets to."""

    port: int
    gateway: str
    mtu: int


@dataclass(frozen=True, slots=True)
class Route:
    """One entry of the kernel's table; several hops are equal-cost ways."""

    network: Network
    hops: tuple[Hop, ...]
    metric: int = 0

    def way(self, host: bytes) -> Way | None:
        """Where a packet for a compact address goes; None when the route says "unreachable"."""
        if not self.hops:
            return None
        hop = self.hops[0] if len(self.hops) == 1 else _rendezvous(_text(host), self.hops)
        return Way(hop.port, hop.gateway or _text(host), hop.mtu)


class Routes:
    """Longest-prefix match in each family; among equal prefixes the lowest metric wins."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        # by IP version, longest prefix first: length, network as a number → route
        self._levels: dict[int, list[tuple[int, dict[int, Route]]]] = {4: [], 6: []}
        self._gateways: dict[tuple[int, str], Way] = {}
        levels: dict[tuple[int, int], dict[int, Route]] = {}
        for route in routes:
            for hop in route.hops:
                if hop.gateway:
                    self._add_gateway(Way(hop.port, hop.gateway, hop.mtu))
            level = levels.setdefault((route.network.version, route.network.prefixlen), {})
            network = int(route.network.network_address)
            known = level.get(network)
            if known is None or route.metric < known.metric:
                level[network] = route
        for version, length in sorted(levels, reverse=True):
            self._levels[version].append((length, levels[version, length]))

    def _add_gateway(self, way: Way) -> None:
        known = self._gateways.setdefault((way.port, way.gateway), way)
        if way.mtu < known.mtu:
            self._gateways[way.port, way.gateway] = way

    def find(self, host: str) -> Way | None:
        """The way towards `host` (IP text), or None without a route."""
        return self.way(compact(host))

    def way(self, host: bytes) -> Way | None:
        """The same for a compact address."""
        route = self.match(4 if len(host) == 4 else 6, int.from_bytes(host, "big"))
        return route.way(host) if route else None

    def gateways(self) -> Iterable[Way]:
        """Every neighbour that some route leads over."""
        return self._gateways.values()

    def gateway(self, port: int, gateway: str) -> Way | None:
        """That neighbour, with the smallest MTU of the routes over it; None if there are none."""
        return self._gateways.get((port, gateway))

    def match(self, version: int, number: int, length: int = 128) -> Route | None:
        """The route of an address, or of a whole network whose prefix has `length` bits."""
        for size, level in self._levels[version]:
            host_bits = _BITS[version] - size
            if size <= length and (route := level.get(number >> host_bits << host_bits)):
                return route
        return None

    def spans(self, version: int) -> Iterator[tuple[int, Route | None]]:
        """The address space as spans in rising order: their first address and their route."""
        starts = {0}
        for size, level in self._levels[version]:
            for network in level:
                starts |= {network, network + (1 << _BITS[version] - size)}
        starts.discard(1 << _BITS[version])
        for start in sorted(starts):
            yield start, self.match(version, start)


def _text(host: bytes) -> str:
    return unpack_host(widened(host))


def _rendezvous(host: str, hops: tuple[Hop, ...]) -> Hop:
    """Equal-cost ways: each host keeps its own as long as that one lives."""
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
