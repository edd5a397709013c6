"""What the kernel says about links, routes and neighbours, and what follows for nexthops.

Pure: facts go in one by one, `resolve` tells what a nexthop entry has to hold. `nexthops` reads the
facts from netlink and writes the entries. IPv4 and IPv6 facts live side by side; a neighbour is a
link and an address of either family.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from relayctl import routes
from relayctl.control.link import Link
from relayctl.datapath.base import Nexthop
from relayctl.routes import Hop, Route, Routes, Way
from relayctl.wire.address import compact


@dataclass(frozen=True, slots=True)
class KernelHop:
    link: int
    gateway: str | None
    dead: bool = field(default=False, compare=False)  # its link is down: not used


Place = tuple[routes.Network, int, int]


@dataclass(frozen=True, slots=True)
class KernelRoute:
    """One entry of a main table. `mtu` is 0 where the route sets none; no hops: unreachable."""

    network: routes.Network
    hops: tuple[KernelHop, ...]
    metric: int = 0
    tos: int = 0
    mtu: int = 0

    @property
    def place(self) -> Place:
        """What a replacing route has in common with the replaced one."""
        return self.network, self.metric, self.tos


class Network:
    """The facts, and the tables made of them."""

    def __init__(
        self, ports: Mapping[int, int], tags: Mapping[int, tuple[int, int]] | None = None
    ) -> None:
        """`ports`: interface index → egress port. `tags`: port → VLAN ids that it adds."""
        self._ports = ports
        self._tags = tags or {}
        self._links: dict[int, Link] = {}
        self._routes: dict[Place, list[KernelRoute]] = {}
        self._macs: dict[tuple[int, str], bytes] = {}  # the last one of each neighbour
        self._failed: set[tuple[int, str]] = set()
        self._shared: set[tuple[int, str]] = set()  # gateways beside others of equal cost
        self._served: dict[tuple[int, str], routes.Network] = {}  # widest behind each gateway
        self._table = Routes()
        self._stale = True

    def rebind(self, ports: Mapping[int, int], tags: Mapping[int, tuple[int, int]]) -> None:
        """Interfaces have other indices from now on."""
        self._ports, self._tags = ports, tags
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

    def keep_links(self, indices: Set[int]) -> None:
        """These are all there are."""
        for index in self._links.keys() - indices:
            self.drop_link(index)

    def drop_link(self, index: int) -> None:
        """The link is gone, and its neighbours with it."""
        self._links.pop(index, None)
        self._macs = {at: mac for at, mac in self._macs.items() if at[0] != index}
        self._failed = {at for at in self._failed if at[0] != index}
        self._stale = True

    def indices(self) -> Set[int]:
        """Of all interfaces that are there."""
        return self._links.keys()

    def link(self, name: str) -> Link | None:
        return next((link for link in self._links.values() if link.name == name), None)

    def set_route(self, route: KernelRoute, *, replaces: bool = False) -> None:
        """Take a route in. One with several hops stands for those of its place that it names."""
        hops = set(route.hops)
        known = self._routes.setdefault(route.place, [])
        known[:] = [
            each
            for each in known  # an equal one may differ in what is dead
            if not (each == route or replaces or (len(hops) > 1 and set(each.hops) <= hops))
        ]
        known.append(route)
        self._stale = True

    def drop_route(self, route: KernelRoute) -> None:
        """Take a route out, or some hops of one: IPv6 announces a lost hop as a lost route."""
        known = self._routes.pop(route.place, [])
        if route in known:
            known.remove(route)
        elif route.network.version == 6:
            known = [left for each in known if (left := _without(route.hops, each))]
        if known:
            self._routes[route.place] = known
        self._stale = True

    def set_neighbour(self, link: int, host: str, mac: bytes | None) -> bool:
        """`mac` is None when the neighbour does not answer: its last address stays in use.

        True when routes follow: an equal-cost gateway came or went.
        """
        neighbour = link, host
        changes = (mac is None) != (neighbour in self._failed)
        if mac is None:
            self._failed.add(neighbour)
        else:
            self._failed.discard(neighbour)
            self._macs[neighbour] = mac
        changes &= neighbour in self._shared
        self._stale |= changes
        return changes

    def table(self) -> Routes:
        if self._stale:
            entries = list(self.entries())
            self._table = Routes(entries)
            self._remember_gateways(entries)
            self._stale = False
        return self._table

    def _remember_gateways(self, entries: Iterable[Route]) -> None:
        """What each gateway serves, kept beyond the end of its routes."""
        widest: dict[tuple[int, str], routes.Network] = {}
        for route in sorted(entries, key=lambda route: route.network.prefixlen, reverse=True):
            for hop in route.hops:
                if hop.gateway and hop.port:
                    widest[hop.port, hop.gateway] = route.network
        self._served |= widest

    def entries(self) -> Iterator[Route]:
        """The routes as the packet process gets them: hops that are dead left out, and of several
        gateways those that do not answer while another does."""
        self._shared.clear()
        for route in self._merged():
            alive = [hop for hop in route.hops if not hop.dead]
            if len(route.hops) > 1:
                self._shared.update((hop.link, hop.gateway) for hop in alive if hop.gateway)
            answering = [hop for hop in alive if (hop.link, hop.gateway) not in self._failed]
            hops = tuple(self._hop(hop, route) for hop in answering or alive)
            if hops or not route.hops:
                yield Route(route.network, hops, route.metric)

    def _merged(self) -> Iterator[KernelRoute]:
        """Routes as they stand; IPv6 ones of one place as one, since they share the load."""
        for (network, _, _), known in self._routes.items():
            if network.version == 6 and len(known) > 1:
                yield replace(known[0], hops=tuple(hop for each in known for hop in each.hops))
            else:
                yield from known

    def _hop(self, hop: KernelHop, route: KernelRoute) -> Hop:
        link = self._links.get(hop.link)
        mtu = min(route.mtu or 65535, link.mtu if link else 1500)
        return Hop(self._ports.get(hop.link, 0), hop.gateway, mtu)

    def link_of(self, port: int) -> Link | None:
        for index, number in self._ports.items():
            if number == port:
                return self._links.get(index)
        return None

    def adopt(self, nexthop: Nexthop) -> None:
        """Believe the MAC address that an earlier daemon left, until the kernel says another."""
        link = self.link_of(nexthop.port)
        if link is not None and any(nexthop.destination_mac):
            self._macs.setdefault((link.index, nexthop.gateway), nexthop.destination_mac)

    def resolve(self, nexthop: Nexthop) -> Nexthop:
        """What the entry of this port and gateway has to hold now: the way to its stand-in.

        Valid while the link is up, a route leads there and the MAC address has ever been known.
        """
        found = self.stand_in(nexthop.port, nexthop.gateway)
        way = found or Way(nexthop.port, nexthop.gateway, nexthop.mtu)
        link = self.link_of(way.port)
        if link is None:
            return replace(nexthop, valid=False)
        mac = self._macs.get((link.index, way.gateway), bytes(6))
        return replace(
            nexthop,
            port=way.port,
            valid=bool(found and link.up and link.mac and any(mac)),
            mtu=min(way.mtu, link.mtu),
            source_mac=link.mac or bytes(6),
            destination_mac=mac,
            tags=self._tags.get(way.port, (0, 0)),
        )

    def is_failed(self, link: int, host: str) -> bool:
        return (link, host) in self._failed

    def stand_in(self, port: int, gateway: str) -> Way | None:
        """The neighbour that gets the packets meant for this one: mostly itself. None without a
        route.

        Flows keep their nexthop's number while a route moves to another gateway. A gateway counts
        while a route names it, afterwards that of the widest network it served does. A host of an
        attached network counts by itself, but what was a gateway does not become such a host: flows
        that went over it must follow the route.
        """
        table, own = self.table(), (port, gateway)
        if way := table.gateway(*own):
            return way
        if network := self._served.get(own):
            at = int(network.network_address)
            route = table.match(network.version, at, network.prefixlen)
            way = route.way(compact(gateway)) if route and _has_gateways(route) else None
        else:
            way = table.find(gateway)
        return way if way and way.port else None


def _has_gateways(route: Route) -> bool:
    """A network that became attached has no one neighbour to stand in for its gateway."""
    return bool(route.hops) and all(hop.gateway for hop in route.hops)


def _without(gone: tuple[KernelHop, ...], route: KernelRoute) -> KernelRoute | None:
    """None when nothing is left of it."""
    left = tuple(hop for hop in route.hops if hop not in gone)
    return route if left == route.hops else replace(route, hops=left) if left else None
