import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from ipaddress import IPv4Network

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
from relayctl.control.network import KernelHop, KernelRoute, Link
from relayctl.control.nexthops import IDLE_PASSES, Nexthops
from relayctl.datapath.base import Nexthop
from relayctl.routes import Route
from tests.unit.relayctl.memory_datapath import MemoryDatapath

OUTER, INNER = 11, 12
PORTS = {OUTER: 1, INNER: 2}
MACS = [bytes.fromhex(f"02000000000{n}") for n in range(4)]
DEFAULT = KernelRoute(IPv4Network("0.0.0.0/0"), (KernelHop(OUTER, "10.3.0.1"),))
INNER_LINK = KernelRoute(IPv4Network("10.2.0.0/24"), (KernelHop(INNER, None),))
SOURCE = "10.2.0.1"


class FakeKernel(Kernel):
    """A kernel that knows what a test says."""

    def __init__(self) -> None:
        self.known_links = [Link(index, f"eth{index}", MACS[0], True, 1500) for index in PORTS]
        self.known_routes = [DEFAULT, INNER_LINK]
        self.known_neighbours = [Neighbour(OUTER, "10.3.0.1", MACS[1])]
        self.watched: list[tuple[int, str]] = []
        self.during_dump: Callable[[], None] = lambda: None

    async def links(self) -> AsyncIterator[Link]:
        self.during_dump()
        await asyncio.sleep(0.001)
        for link in self.known_links:
            yield link

    async def routes(self) -> AsyncIterator[KernelRoute]:
        for route in self.known_routes:
            yield route

    async def neighbours(self) -> AsyncIterator[Neighbour]:
        for neighbour in self.known_neighbours:
            yield neighbour

    async def keep_resolved(self, link: int, host: str) -> bool:
        self.watched.append((link, host))
        return True

    poke = keep_resolved


class FakeEvents(Events):
    """Events that a test tells."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._waiting: list[Fact | None] = []

    def fileno(self) -> int:
        return self._read

    def tell(self, *facts: Fact | None) -> None:
        """None: the kernel had more news than the socket holds."""
        self._waiting += facts
        os.write(self._write, bytes(len(facts)))

    def read(self) -> Iterator[Fact]:
        while self._waiting:
            os.read(self._read, 1)
            fact = self._waiting.pop(0)
            if fact is None:
                raise EventsLost
            yield fact

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


class Fixture:
    def __init__(self) -> None:
        self.datapath = MemoryDatapath()
        self.kernel = FakeKernel()
        self.events = FakeEvents()
        self.published: list[list[Route]] = []
        self.retired: list[int] = []
        self.takes_messages = True
        self.nexthops = Nexthops(
            self.datapath, PORTS, self.events, self.kernel, self._publish, self._retire
        )

    def _publish(self, routes: Iterable[Route]) -> bool:
        self.published.append(list(routes))
        return self.takes_messages

    def _retire(self, index: int) -> bool:
        self.retired.append(index)
        return self.takes_messages

    def entry(self, index: int) -> Nexthop:
        return self.datapath.nexthops()[index]


def play(scene: Callable[[Fixture], Awaitable[None]], adopted: dict[int, Nexthop] | None = None):  # type: ignore[no-untyped-def]
    """Run a scene beside the running `Nexthops`."""

    async def run() -> None:
        fixture = Fixture()
        for index, entry in (adopted or {}).items():
            fixture.datapath.write_nexthop(index, entry)
        await fixture.nexthops.start()
        task = asyncio.create_task(fixture.nexthops.run())
        await settle()
        try:
            await scene(fixture)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            fixture.events.close()

    asyncio.run(run())


async def settle() -> None:
    await asyncio.sleep(0.01)


def test_start_publishes_routes_and_adopts_entries() -> None:
    async def scene(fixture: Fixture) -> None:
        assert [str(route.network) for route in fixture.published[0]] == [
            "0.0.0.0/0",
            "10.2.0.0/24",
        ]
        assert fixture.entry(5).valid
        assert fixture.entry(5).destination_mac == MACS[1]
        assert fixture.kernel.watched == [(OUTER, "10.3.0.1")]

    play(scene, {5: Nexthop(1, "10.3.0.1", SOURCE)})


def test_a_reserved_entry_is_filled_when_its_neighbour_answers() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.nexthops.reserved(1, 2, "10.2.0.2", SOURCE, 1500)
        await settle()
        assert fixture.kernel.watched == [(INNER, "10.2.0.2")]
        fixture.events.tell(Neighbour(INNER, "10.2.0.2", MACS[2]))
        await settle()
        assert fixture.entry(1) == Nexthop(2, "10.2.0.2", SOURCE, True, 1500, MACS[0], MACS[2])

    play(scene)


def test_one_event_changes_the_entry() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.events.tell(Neighbour(OUTER, "10.3.0.1", MACS[3]))
        await settle()
        assert fixture.entry(5).destination_mac == MACS[3]
        fixture.events.tell(Neighbour(OUTER, "10.3.0.1", None))
        await settle()
        assert (fixture.entry(5).valid, fixture.entry(5).destination_mac) == (True, MACS[3])
        assert fixture.nexthops.failed() == 1
        down = Link(OUTER, "eth11", MACS[0], False, 1500)
        fixture.kernel.known_links[0] = down
        fixture.events.tell(down)
        await settle()
        assert not fixture.entry(5).valid

    play(scene, {5: Nexthop(1, "10.3.0.1", SOURCE)})


def test_a_flushed_neighbour_is_asked_for_again_and_stays_in_use() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.events.tell(NeighbourGone(OUTER, "10.3.0.1"), NeighbourGone(OUTER, "10.3.0.99"))
        await settle()
        assert fixture.kernel.watched == [(OUTER, "10.3.0.1")] * 2
        assert fixture.entry(5).valid

    play(scene, {5: Nexthop(1, "10.3.0.1", SOURCE)})


def test_routes_that_change_are_published_and_clear_entries() -> None:
    async def scene(fixture: Fixture) -> None:
        other = KernelRoute(DEFAULT.network, (KernelHop(OUTER, "10.3.0.9"),))
        fixture.events.tell(RouteSet(other, replaces=True))
        await settle()
        assert fixture.published[-1][-1].hops[0].gateway == "10.3.0.9"
        assert not fixture.entry(5).valid
        fixture.events.tell(RouteGone(other))
        await settle()
        assert [str(route.network) for route in fixture.published[-1]] == ["10.2.0.0/24"]
        fixture.events.tell(LinkGone(OUTER))
        await settle()
        assert not fixture.entry(5).valid

    play(scene, {5: Nexthop(1, "10.3.0.1", SOURCE)})


def test_lost_events_and_lost_addresses_mean_to_read_everything_again() -> None:
    async def scene(fixture: Fixture) -> None:
        for news in (None, AddressGone()):
            fixture.kernel.known_routes.pop()
            fixture.events.tell(news)
            await settle()
            assert len(fixture.published[-1]) == len(fixture.kernel.known_routes)

    play(scene)


def test_events_wait_while_everything_is_read() -> None:
    async def scene(fixture: Fixture) -> None:
        moved = Neighbour(OUTER, "10.3.0.1", MACS[3])
        fixture.kernel.during_dump = lambda: fixture.events.tell(moved)
        fixture.events.tell(None)
        await settle()
        assert fixture.entry(5).destination_mac == MACS[3]

    play(scene, {5: Nexthop(1, "10.3.0.1", SOURCE)})


def test_routes_are_sent_again_when_the_pipe_was_full() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.takes_messages = False
        fixture.events.tell(RouteGone(DEFAULT))
        await settle()
        refused = len(fixture.published)
        fixture.takes_messages = True
        await asyncio.sleep(0.3)
        assert len(fixture.published) == refused + 1

    play(scene)


def test_unused_entries_retire_and_keep_their_content_meanwhile() -> None:
    async def scene(fixture: Fixture) -> None:
        for _ in range(IDLE_PASSES):
            assert fixture.retired == []
            fixture.nexthops.swept({0})
        fixture.nexthops.swept({0})
        assert fixture.retired == [5], "asked once, then it waits for the answer"
        before = fixture.entry(5)
        fixture.events.tell(Neighbour(OUTER, "10.3.0.1", MACS[3]))
        await settle()
        assert fixture.entry(5) == before
        fixture.nexthops.kept(5)
        assert fixture.entry(5).destination_mac == MACS[3]
        fixture.nexthops.released(5)
        assert fixture.nexthops.entries == {}

    play(scene, {5: Nexthop(1, "10.3.0.1", SOURCE)})


def test_an_entry_that_flows_use_does_not_retire() -> None:
    async def scene(fixture: Fixture) -> None:
        for _ in range(IDLE_PASSES):
            fixture.nexthops.swept({0})
            fixture.nexthops.swept({0, 5})
        assert fixture.retired == []

    play(scene, {5: Nexthop(1, "10.3.0.1", SOURCE)})


def test_a_reservation_whose_news_was_lost_is_found_by_the_sweep() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.datapath.write_nexthop(3, Nexthop(1, "10.3.0.1", SOURCE))
        fixture.nexthops.swept({0, 3})
        assert fixture.entry(3).valid

    play(scene)
