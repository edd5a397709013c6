"""Keeps the nexthop table current: netlink events in, map entries and route tables out.

Runs in the control process's event loop. A neighbour's new MAC address stands in the map before
the next event is read; so does the gateway that took another one's place. Which entry a flow uses
is the packet process's choice (`routes`); here the entries only get their content.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Protocol

from relayctl.control.facts import (
    Fact,
    LinkGone,
    Neighbour,
    NeighbourGone,
    RouteGone,
    RouteSet,
    RoutesUncertain,
)
from relayctl.control.link import Link
from relayctl.control.neighbours import Neighbours
from relayctl.control.netlink import Events, EventsLost, Kernel
from relayctl.control.network import Network
from relayctl.datapath.base import Datapath, Nexthop
from relayctl.routes import Route, Routes

PROBE_S = 5.0  # between two questions to a neighbour whether it is still there
RESYNC_S = 60.0  # the whole state is read again, in case an event meant more than it said
RETRY_S = 0.2  # until a full pipe takes more of the routes
IDLE_PASSES = 2  # sweeps without a flow before a nexthop is given up

log = logging.getLogger(__name__)


class Publisher(Protocol):
    """Sends route tables to the packet process, and says whether the last one is out whole."""

    def publish(self, routes: Iterable[Route]) -> bool: ...

    def resume(self) -> bool: ...

    def forget(self) -> None: ...


class Nexthops:
    """The control process's side of the nexthop table."""

    def __init__(
        self,
        datapath: Datapath,
        ports: Mapping[int, int],
        events: Events,
        kernel: Kernel,
        publisher: Publisher,
        retire: Callable[[int], bool],
        tags: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        """`ports`: interface index → egress port. `retire` asks the packet process to give up an
        index and says whether the message went out. `tags`: port → VLAN ids that its packets get,
        outer first."""
        self._datapath = datapath
        self._ports = ports
        self._events = events
        self._kernel = kernel
        self._publisher = publisher
        self._retire = retire
        self._network = Network(ports, tags)
        self._neighbours = Neighbours(kernel)
        self._names: dict[int, str] = {}  # of the interfaces in `ports`, by index
        self._gone: set[int] = set()  # those of them that went, though one like it may be back
        self._entries: dict[int, Nexthop] = {}
        self._written: dict[int, Nexthop] = {}
        self._replaced: set[int] = set()  # entries that lead to another neighbour than their own
        self._idle: dict[int, int] = {}  # index → sweeps without a flow
        self._retiring: set[int] = set()
        self._is_published = False
        self._wants_resync = False
        self._woken = asyncio.Event()

    @property
    def routes(self) -> Routes:
        return self._network.table()

    @property
    def entries(self) -> Mapping[int, Nexthop]:
        """By the port and gateway that they are reserved for."""
        return self._entries

    def failed(self) -> int:
        """Entries whose neighbour does not answer."""
        return sum(
            self._network.is_failed(link.index, entry.gateway)
            for entry in self._entries.values()
            if (link := self._network.link_of(entry.port))
        )

    def lost(self) -> list[str]:
        """What befell interfaces that the program was made for."""
        return [
            f"interface {name} {'was made anew' if self._network.link(name) else 'is gone'}"
            for index, name in self._names.items()
            if index in self._gone or index not in self._network.indices()
        ]

    def rebind(self, ports: Mapping[int, int], tags: Mapping[int, tuple[int, int]]) -> None:
        """The program was made again, for interfaces that may have other indices."""
        self._ports = ports
        self._network.rebind(ports, tags)
        self._names.clear()
        self._gone.clear()
        self._wants_resync = True
        for index in self._entries:
            self._watch(index)
        self._woken.set()

    async def start(self) -> None:
        """Adopt what the table holds, read the kernel's state and publish the routes."""
        await self._resync()
        self._adopt()

    async def run(self) -> None:
        """Follow the kernel until cancelled."""
        loop = asyncio.get_running_loop()
        self._listen()
        try:
            last_resync = last_probe = loop.time()
            while True:
                self._woken.clear()
                await self._neighbours.ask()
                if self._wants_resync or loop.time() - last_resync >= RESYNC_S:
                    last_resync = loop.time()
                    await self._resync()
                if loop.time() - last_probe >= PROBE_S:
                    last_probe = loop.time()
                    in_use = [at for index in self._entries for at in self._neighbours_of(index)]
                    await self._neighbours.probe(in_use)
                if not self._is_published:
                    self._is_published = self._publisher.resume()
                pause = PROBE_S if self._is_published else RETRY_S
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):  # wait_for may swallow a cancellation
                        await self._woken.wait()
        finally:
            loop.remove_reader(self._events.fileno())

    @property
    def is_published(self) -> bool:
        """Whether the packet process has all routes, or will read them before what is sent now."""
        return self._is_published

    def republish(self) -> None:
        """The packet process is a new one, and knows no routes. The numbers in the table are those
        that it starts with, whatever the old one was asked to retire or failed to tell."""
        for index in self._entries.keys() - self._datapath.nexthops().keys():
            self.released(index)
        self._retiring.clear()
        self._publisher.forget()
        self._publish_routes()
        self._woken.set()

    def reserved(self, index: int, port: int, gateway: str, mtu: int) -> None:
        """The packet process took a new index: fill its entry."""
        self._retiring.discard(index)
        self._idle.pop(index, None)
        self._entries[index] = Nexthop(port, gateway, mtu=mtu)
        self._written.pop(index, None)
        self._refresh(index)
        self._watch(index)

    def released(self, index: int) -> None:
        """The packet process gave the index up and cleared its entry."""
        self._retiring.discard(index)
        self._idle.pop(index, None)
        self._entries.pop(index, None)
        self._written.pop(index, None)
        self._replaced.discard(index)

    def kept(self, index: int) -> None:
        """The packet process still uses the index."""
        self._retiring.discard(index)
        self._idle.pop(index, None)
        self._refresh(index)

    def swept(self, used: Set[int]) -> None:
        """Retire what no flow has used for some sweeps. `used` are the indices in flows."""
        if not used <= {0, *self._entries}:
            self._adopt()  # the news of a reservation found the pipe full
        for index in list(self._entries):
            idle = 0 if index in used else self._idle.get(index, 0) + 1
            self._idle[index] = idle
            if idle >= IDLE_PASSES and index not in self._retiring and self._retire(index):
                self._retiring.add(index)  # its content is frozen: the index may be taken anew

    def _adopt(self) -> None:
        for index, entry in self._datapath.nexthops().items():
            if index not in self._entries:
                self._network.adopt(entry)
                self._entries[index] = self._written[index] = entry
                self._refresh(index)
                self._watch(index)

    def _listen(self) -> None:
        asyncio.get_running_loop().add_reader(self._events.fileno(), self._read_events)

    def _read_events(self) -> None:
        routes_changed = False
        try:
            for fact in self._events.read():
                routes_changed |= self._apply(fact)
        except EventsLost:
            log.warning("netlink events were lost, reading everything again")
            self._wants_resync = True
        if routes_changed:
            self._publish_routes()
            self._refresh_all()
        if self._wants_resync or self._neighbours.are_wanted or not self._is_published:
            self._woken.set()

    def _apply(self, fact: Fact) -> bool:
        """Take in a fact. True when it changes routes or links."""
        network = self._network
        match fact:
            case Neighbour(link, host):
                changes_routes = self._set_neighbour(fact)
                if not changes_routes:
                    self._refresh_neighbour(link, host)
                return changes_routes
            case NeighbourGone(link, host):  # flushed: ask for it again, its MAC stays in use
                self._neighbours.forgotten(link, host)
                for index in self._indices(link, host):
                    self._watch(index)
                return False
            case Link():
                self._wants_resync |= self._set_link(fact)
            case LinkGone(index):
                self._gone.update({index} & self._names.keys())
                network.drop_link(index)
            case RouteSet(route, replaces):
                network.set_route(route, replaces=replaces)
            case RouteGone(route):
                network.drop_route(route)
            case RoutesUncertain():
                self._wants_resync = True
        return True

    def _set_link(self, link: Link) -> bool:
        if link.index in self._ports:
            self._names.setdefault(link.index, link.name)
        return self._network.set_link(link)

    def _set_neighbour(self, neighbour: Neighbour) -> bool:
        """True when routes follow. One that ceases to answer may have moved: ask everybody."""
        at = neighbour.link, neighbour.host
        self._neighbours.heard(neighbour)
        was_failed = self._network.is_failed(*at)
        changes_routes = self._network.set_neighbour(*at, neighbour.mac)
        if neighbour.mac is None and not was_failed:
            for index in self._indices(*at):
                self._watch(index)
        return changes_routes

    async def _resync(self) -> None:
        """Read everything again. Meanwhile events wait, so none is lost or overtaken."""
        loop = asyncio.get_running_loop()
        is_listening = loop.remove_reader(self._events.fileno())
        self._wants_resync = False
        links = [link async for link in self._kernel.links()]
        self._network.keep_links({link.index for link in links})
        for link in links:
            self._set_link(link)
        routes = [route async for route in self._kernel.routes()]
        self._network.forget_routes()
        for route in routes:
            self._network.set_route(route)
        async for neighbour in self._kernel.neighbours():
            self._set_neighbour(neighbour)
        self._publish_routes()
        self._refresh_all()
        if is_listening:
            self._listen()

    def _publish_routes(self) -> None:
        self._is_published = self._publisher.publish(self._network.entries())

    def _refresh_all(self) -> None:
        for index in self._entries:
            self._refresh(index)

    def _refresh_neighbour(self, link: int, host: str) -> None:
        for index in self._indices(link, host):
            self._refresh(index)

    def _indices(self, link: int, host: str) -> list[int]:
        """Entries that this neighbour concerns, or may."""
        own = self._ports.get(link), host
        return [
            index
            for index, entry in self._entries.items()
            if (entry.port, entry.gateway) == own or index in self._replaced
        ]

    def _refresh(self, index: int) -> None:
        entry = self._entries.get(index)
        if entry is None or index in self._retiring:
            return
        resolved = self._network.resolve(entry)
        was = self._written.get(index)
        if resolved != was:
            if not was or was.valid != resolved.valid:
                state = "resolved" if resolved.valid else "not usable"
                log.debug("nexthop %d over %s: %s", index, entry.gateway, state)
            self._datapath.write_nexthop(index, resolved)
            self._written[index] = resolved
            self._entries[index] = replace(resolved, port=entry.port)
        way = self._network.stand_in(entry.port, entry.gateway)
        if way and (way.port, way.gateway) != (entry.port, entry.gateway):
            self._replaced.add(index)
            self._watch(index)
        else:
            self._replaced.discard(index)

    def _watch(self, index: int) -> None:
        self._neighbours.want(self._neighbours_of(index))
        self._woken.set()

    def _neighbours_of(self, index: int) -> Iterator[tuple[int, str]]:
        """Links and addresses that have to be resolved for an entry."""
        entry = self._entries[index]
        way = self._network.stand_in(entry.port, entry.gateway)
        for neighbour in {(each.port, each.gateway) for each in (entry, way) if each}:
            link = self._network.link_of(neighbour[0])
            if link is not None:
                yield link.index, neighbour[1]
