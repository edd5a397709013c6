"""What the kernel says about links, routes and neighbours, and what follows for nexthops.

Pure: facts go in one by one, `resolve` tells what a nexthop entry has to hold. `nexthops` reads the
facts from netlink and writes the entries.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network

from relayctl.datapath.base import Nexthop
from relayctl.routes import Hop, Route, Routes


@dataclass(frozen=True, slots=True)
class Link:
    """An interface. `mac` is empty where it has none; `up` includes its carrier."""

    index: int
    name: str
    mac: bytes
    up: bool
    mtu: int


@dataclass(frozen=True, slots=True)
class KernelHop:
    link: int
    gateway: str | None
    dead: bool = field(default=False, compare=False)  # its link is down: not used


@dataclass(frozen=True, slots=True)
class KernelRoute:
    """One entry of the main table. `mtu` is 0 where the route sets none; no hops: unreachable."""

    network: IPv4Network
    hops: tuple[KernelHop, ...]
    metric: int = 0
    tos: int = 0
    mtu: int = 0

    @property
    def place(self) -> tuple[IPv4Network, int, int]:
        """What a replacing route has in common with the replaced one."""
        return self.network, self.metric, self.tos


class Network:
    """The facts, and the tables made of them."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        """`ports`: interface index → egress port."""
        self._ports = ports
        self._links: dict[int, Link] = {}
        self._routes: dict[KernelRoute, None] = {}
        self._macs: dict[tuple[int, str], bytes] = {}  # the last one of each neighbour
        self._failed: set[tuple[int, str]] = set()
        self._were_gateways: set[tuple[int, str]] = set()
        self._table = Routes()
        self._stale = True

    def forget_routes(self) -> None:
        self._routes.clear()
        self._stale = True

    def set_link(self, link: Link) -> bool:
        """True when routes may have gone with it: the kernel does not announce those."""
        before = self._links.get(link.index)
        self._links[link.index] = link
        self._stale = True
        return before is not None and before.up != link.up

    def drop_link(self, index: int) -> None:
        self._links.pop(index, None)
        self._stale = True

    def set_route(self, route: KernelRoute, *, replaces: bool = False) -> None:
        if replaces:
            for known in [known for known in self._routes if known.place == route.place]:
                del self._routes[known]
        self._routes.pop(route, None)  # an equal one may differ in what is dead
        self._routes[route] = None
        self._stale = True

    def drop_route(self, route: KernelRoute) -> None:
        self._routes.pop(route, None)
        self._stale = True

    def set_neighbour(self, link: int, host: str, mac: bytes | None) -> None:
        """`mac` is None when the neighbour does not answer: its last address stays in use."""
        if mac is None:
            self._failed.add((link, host))
        else:
            self._failed.discard((link, host))
            self._macs[link, host] = mac

    def table(self) -> Routes:
        if self._stale:
            self._table = Routes(self.entries())
            for route in self._routes:
                for hop in route.hops:
                    if hop.gateway and hop.link in self._ports:
                        self._were_gateways.add((self._ports[hop.link], hop.gateway))
            self._stale = False
        return self._table

    def entries(self) -> Iterable[Route]:
        """The routes as the packet process gets them."""
        for route in self._routes:
            hops = tuple(self._hop(hop, route) for hop in route.hops if not hop.dead)
            if hops or not route.hops:
                yield Route(route.network, hops, route.metric)

    def _hop(self, hop: KernelHop, route: KernelRoute) -> Hop:
        link = self._links.get(hop.link)
        mtu = min(route.mtu or 65535, link.mtu if link else 1500)
        return Hop(self._ports.get(hop.link, 0), hop.gateway, mtu)

    def link_of(self, port: int) -> Link | None:
        for index, number in self._ports.items():
            if number == port:
                return self._links.get(index)
        return None

    def resolve(self, nexthop: Nexthop) -> Nexthop:
        """The entry as it has to be now: valid while its link is up, a route leads over it and
        the neighbour's MAC address has ever been known, to us or to an earlier daemon."""
        link = self.link_of(nexthop.port)
        if link is None:
            return replace(nexthop, valid=False)
        mac = self._macs.get((link.index, nexthop.gateway), nexthop.destination_mac)
        return replace(
            nexthop,
            valid=bool(link.up and link.mac and any(mac) and self._is_used(nexthop)),
            mtu=link.mtu,
            source_mac=link.mac or nexthop.source_mac,
            destination_mac=mac,
        )

    def is_failed(self, nexthop: Nexthop) -> bool:
        link = self.link_of(nexthop.port)
        return link is not None and (link.index, nexthop.gateway) in self._failed

    def _is_used(self, nexthop: Nexthop) -> bool:
        """A gateway counts while a route names it, a host of an attached network by itself.

        What was a gateway does not become such a host: flows that went over it must follow the
        route that replaced its own.
        """
        table, way = self.table(), (nexthop.port, nexthop.gateway)
        return table.uses(*way) or (way not in self._were_gateways and table.on_link(*way))
