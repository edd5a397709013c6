"""Keeps the nexthop table current: netlink events in, map entries and route tables out.

Runs in the control process's event loop. A neighbour's new MAC address stands in the map before
the next event is read. Which entry a flow uses is the packet process's choice (`routes`); here the
entries only get their content.
"""

import asyncio
import contextlib
import logging
import platform
from collections.abc import Callable, Iterable, Mapping, Set

from relayctl.control.netlink import (
    AddressGone,
    Events,
    EventsLost,
    Fact,
    Kernel,
    LinkGone,
    Neighbour,
    NeighbourGone,
    RouteGone,
    RouteSet,
)
from relayctl.control.network import Link, Network
from relayctl.datapath.base import Datapath, Nexthop
from relayctl.routes import Route, Routes

MANAGED_SINCE = (5, 16)  # kernel that keeps neighbours resolved by itself
POKE_S = 5.0
RESYNC_S = 60.0  # the whole state is read again, in case an event meant more than it said
RETRY_S = 0.2  # until a full pipe takes the routes
IDLE_PASSES = 2  # sweeps without a flow before a nexthop is given up

log = logging.getLogger(__name__)


class Nexthops:
    """The control process's side of the nexthop table."""

    def __init__(
        self,
        datapath: Datapath,
        ports: Mapping[int, int],
        events: Events,
        kernel: Kernel,
        publish: Callable[[Iterable[Route]], bool],
        retire: Callable[[int], bool],
    ) -> None:
        """`ports`: interface index → egress port. `publish` sends the route table to the packet
        process, `retire` asks it to give up an index; both say whether the message went out."""
        self._datapath = datapath
        self._ports = ports
        self._events = events
        self._kernel = kernel
        self._publish = publish
        self._retire = retire
        self._network = Network(ports)
        self._entries: dict[int, Nexthop] = {}
        self._idle: dict[int, int] = {}  # index → sweeps without a flow
        self._retiring: set[int] = set()
        self._to_watch: set[tuple[int, str]] = set()
        self._is_published = False
        self._wants_resync = False
        self._woken = asyncio.Event()

    @property
    def routes(self) -> Routes:
        return self._network.table()

    @property
    def entries(self) -> Mapping[int, Nexthop]:
        return self._entries

    def failed(self) -> int:
        """Entries whose neighbour does not answer."""
        return sum(self._network.is_failed(entry) for entry in self._entries.values())

    async def start(self) -> None:
        """Adopt what the table holds, read the kernel's state and publish the routes."""
        await self._resync()
        self._adopt()

    async def run(self) -> None:
        """Follow the kernel until cancelled."""
        loop = asyncio.get_running_loop()
        self._listen()
        try:
            last_resync = last_poke = loop.time()
            while True:
                self._woken.clear()
                await self._watch_new()
                if self._wants_resync or loop.time() - last_resync >= RESYNC_S:
                    last_resync = loop.time()
                    await self._resync()
                if not _is_managed() and loop.time() - last_poke >= POKE_S:
                    last_poke = loop.time()
                    self._watch_all()
                if not self._is_published:
                    self._publish_routes()
                pause = POKE_S if self._is_published else RETRY_S
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):  # wait_for may swallow a cancellation
                        await self._woken.wait()
        finally:
            loop.remove_reader(self._events.fileno())

    def reserved(self, index: int, port: int, gateway: str, source: str, mtu: int) -> None:
        """The packet process took a new index: fill its entry."""
        self._retiring.discard(index)
        self._idle.pop(index, None)
        self._entries[index] = Nexthop(port, gateway, source, mtu=mtu)
        self._refresh(index)
        self._watch(index)

    def released(self, index: int) -> None:
        """The packet process gave the index up and cleared its entry."""
        self._retiring.discard(index)
        self._idle.pop(index, None)
        self._entries.pop(index, None)

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
                self._entries[index] = entry
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
        if self._wants_resync or self._to_watch or not self._is_published:
            self._woken.set()

    def _apply(self, fact: Fact) -> bool:
        """Take in a fact. True when it changes routes or links."""
        network = self._network
        match fact:
            case Neighbour(link, host, mac):
                network.set_neighbour(link, host, mac)
                self._refresh_neighbour(link, host)
                return False
            case NeighbourGone(link, host):  # flushed: ask for it again, its MAC stays in use
                for index in self._indices(link, host):
                    self._watch(index)
                return False
            case Link():
                self._wants_resync |= network.set_link(fact)
            case LinkGone(index):
                network.drop_link(index)
            case RouteSet(route, replaces):
                network.set_route(route, replaces=replaces)
            case RouteGone(route):
                network.drop_route(route)
            case AddressGone():
                self._wants_resync = True
        return True

    async def _resync(self) -> None:
        """Read everything again. Meanwhile events wait, so none is lost or overtaken."""
        loop = asyncio.get_running_loop()
        is_listening = loop.remove_reader(self._events.fileno())
        self._wants_resync = False
        async for link in self._kernel.links():
            self._network.set_link(link)
        routes = [route async for route in self._kernel.routes()]
        self._network.forget_routes()
        for route in routes:
            self._network.set_route(route)
        async for neighbour in self._kernel.neighbours():
            self._network.set_neighbour(neighbour.link, neighbour.host, neighbour.mac)
        self._publish_routes()
        self._refresh_all()
        if is_listening:
            self._listen()

    def _publish_routes(self) -> None:
        self._is_published = self._publish(self._network.entries())

    def _refresh_all(self) -> None:
        for index in self._entries:
            self._refresh(index)

    def _refresh_neighbour(self, link: int, host: str) -> None:
        for index in self._indices(link, host):
            self._refresh(index)

    def _indices(self, link: int, host: str) -> list[int]:
        port = self._ports.get(link)
        return [
            index
            for index, entry in self._entries.items()
            if entry.gateway == host and entry.port == port
        ]

    def _refresh(self, index: int) -> None:
        entry = self._entries.get(index)
        if entry is None or index in self._retiring:
            return
        resolved = self._network.resolve(entry)
        if resolved != entry:
            if entry.valid != resolved.valid:
                state = "resolved" if resolved.valid else "not usable"
                log.debug("nexthop %d over %s: %s", index, entry.gateway, state)
            self._datapath.write_nexthop(index, resolved)
            self._entries[index] = resolved

    def _watch_all(self) -> None:
        for index in self._entries:
            self._watch(index)

    def _watch(self, index: int) -> None:
        entry = self._entries[index]
        link = self._network.link_of(entry.port)
        if link is not None:
            self._to_watch.add((link.index, entry.gateway))
            self._woken.set()

    async def _watch_new(self) -> None:
        while self._to_watch:
            link, host = self._to_watch.pop()
            if _is_managed():
                await self._kernel.keep_resolved(link, host)
            else:
                await self._kernel.poke(link, host)


def _is_managed() -> bool:
    major, minor = platform.release().split(".")[:2]
    return (int(major), int(minor)) >= MANAGED_SINCE
