import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network

import pytest

from relayctl.control import neighbours
from relayctl.control import nexthops as module
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
from relayctl.control.netlink import Events, EventsLost, Kernel
from relayctl.control.network import KernelHop, KernelRoute
from relayctl.control.nexthops import IDLE_PASSES, Nexthops
from relayctl.datapath.base import Nexthop
from relayctl.routes import Route
from tests.unit.relayctl.memory_datapath import MemoryDatapath

OUTER, INNER = 11, 12
PORTS = {OUTER: 1, INNER: 2}
MACS = [bytes.fromhex(f"02000000000{n}") for n in range(4)]
DEFAULT = KernelRoute(IPv4Network("0.0.0.0/0"), (KernelHop(OUTER, "10.3.0.1"),))
INNER_LINK = KernelRoute(IPv4Network("10.2.0.0/24"), (KernelHop(INNER, None),))


class FakeKernel(Kernel):
    """A kernel that knows what a test says."""

    def __init__(self) -> None:
        self.known_links = [Link(index, f"eth{index}", MACS[0], True, 1500) for index in PORTS]
        self.known_routes = [DEFAULT, INNER_LINK]
        self.known_neighbours = [Neighbour(OUTER, "10.3.0.1", MACS[1])]
        self.watched: list[tuple[int, str]] = []
        self.probed: list[tuple[int, str]] = []
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

    async def probe(self, link: int, host: str) -> bool:
        self.probed.append((link, host))
        return True


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
        self.resumed = self.forgotten = 0
        self.nexthops = Nexthops(
            self.datapath,
            PORTS,
            self.events,
            self.kernel,
            self,
            self._retire,
            tags={2: (7, 0)},
        )

    def publish(self, routes: Iterable[Route]) -> bool:
        self.published.append(list(routes))
        return self.takes_messages

    def resume(self) -> bool:
        self.resumed += 1
        return self.takes_messages

    def forget(self) -> None:
        self.forgotten += 1

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
    """Let a dump end, which takes a millisecond, and what follows from it."""
    for _ in range(3):
        await asyncio.sleep(0.005)
        for _ in range(20):
            await asyncio.sleep(0)


def test_start_publishes_routes_and_adopts_entries() -> None:
    async def scene(fixture: Fixture) -> None:
        assert [str(route.network) for route in fixture.published[0]] == [
            "0.0.0.0/0",
            "10.2.0.0/24",
        ]
        assert fixture.entry(5).valid
        assert fixture.entry(5).destination_mac == MACS[1]
        assert fixture.kernel.watched == [(OUTER, "10.3.0.1")]

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_a_reserved_entry_is_filled_when_its_neighbour_answers() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.nexthops.reserved(1, 2, "10.2.0.2", 1500)
        await settle()
        assert fixture.kernel.watched == [(INNER, "10.2.0.2")]
        fixture.events.tell(Neighbour(INNER, "10.2.0.2", MACS[2]))
        await settle()
        assert fixture.entry(1) == Nexthop(2, "10.2.0.2", True, 1500, MACS[0], MACS[2], (7, 0))

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

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_a_flushed_neighbour_is_asked_for_again_and_stays_in_use() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.events.tell(NeighbourGone(OUTER, "10.3.0.1"), NeighbourGone(OUTER, "10.3.0.99"))
        await settle()
        assert fixture.kernel.watched == [(OUTER, "10.3.0.1")] * 2
        assert fixture.entry(5).valid

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_routes_that_change_are_published_and_clear_entries() -> None:
    async def scene(fixture: Fixture) -> None:
        other = KernelRoute(DEFAULT.network, (KernelHop(OUTER, "10.3.0.9"),))
        fixture.events.tell(RouteSet(other, replaces=True))
        await settle()
        assert {hop.gateway for route in fixture.published[-1] for hop in route.hops} == {
            None,
            "10.3.0.9",
        }
        assert not fixture.entry(5).valid, "the new gateway's MAC address is not known yet"
        assert fixture.kernel.watched[-1] in [(OUTER, "10.3.0.9"), (OUTER, "10.3.0.1")]
        assert {at for at in fixture.kernel.watched if at[1] == "10.3.0.9"}
        fixture.events.tell(Neighbour(OUTER, "10.3.0.9", MACS[2]))
        await settle()
        assert fixture.entry(5).valid
        assert fixture.entry(5).destination_mac == MACS[2]
        fixture.events.tell(RouteGone(other))
        await settle()
        assert [str(route.network) for route in fixture.published[-1]] == ["10.2.0.0/24"]
        fixture.events.tell(LinkGone(OUTER))
        await settle()
        assert not fixture.entry(5).valid

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_lost_events_and_lost_addresses_mean_to_read_everything_again() -> None:
    async def scene(fixture: Fixture) -> None:
        for news in (None, RoutesUncertain()):
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

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_routes_go_on_when_the_pipe_was_full() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.takes_messages = False
        fixture.events.tell(RouteGone(DEFAULT))
        await settle()
        refused = len(fixture.published)
        fixture.takes_messages = True
        before = fixture.resumed
        await asyncio.sleep(0.5)
        assert (fixture.resumed, len(fixture.published)) == (before + 1, refused)

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

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_an_entry_that_flows_use_does_not_retire() -> None:
    async def scene(fixture: Fixture) -> None:
        for _ in range(IDLE_PASSES):
            fixture.nexthops.swept({0})
            fixture.nexthops.swept({0, 5})
        assert fixture.retired == []

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_a_reservation_whose_news_was_lost_is_found_by_the_sweep() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.datapath.write_nexthop(3, Nexthop(1, "10.3.0.1"))
        fixture.nexthops.swept({0, 3})
        assert fixture.entry(3).valid

    play(scene)


def test_one_event_moves_an_entry_to_the_gateway_that_took_over() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.events.tell(Neighbour(INNER, "10.2.0.9", MACS[2]))
        other = KernelRoute(DEFAULT.network, (KernelHop(INNER, "10.2.0.9"),))
        fixture.events.tell(RouteSet(other, replaces=True))
        await settle()
        entry = fixture.entry(5)
        assert (entry.port, entry.gateway) == (2, "10.3.0.1")
        assert (entry.valid, entry.destination_mac, entry.tags) == (True, MACS[2], (7, 0))
        assert fixture.nexthops.entries[5].port == 1, "it is still the number of the old gateway"
        fixture.events.tell(Neighbour(INNER, "10.2.0.9", MACS[3]))
        await settle()
        assert fixture.entry(5).destination_mac == MACS[3]
        fixture.events.tell(RouteSet(DEFAULT, replaces=True))
        await settle()
        assert fixture.entry(5) == Nexthop(1, "10.3.0.1", True, 1500, MACS[0], MACS[1])

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_a_dead_one_of_several_gateways_is_replaced_by_a_live_one() -> None:
    async def scene(fixture: Fixture) -> None:
        hops = tuple(KernelHop(OUTER, f"10.3.0.{n}") for n in (1, 2))
        fixture.events.tell(RouteSet(KernelRoute(DEFAULT.network, hops), replaces=True))
        fixture.events.tell(Neighbour(OUTER, "10.3.0.2", MACS[2]))
        fixture.events.tell(Neighbour(OUTER, "10.3.0.1", None))
        await settle()
        assert fixture.entry(5).destination_mac == MACS[2]
        assert fixture.nexthops.failed() == 1
        assert [hop.gateway for hop in fixture.published[-1][0].hops] == ["10.3.0.2"]
        fixture.events.tell(Neighbour(OUTER, "10.3.0.2", None))
        await settle()
        entry = fixture.entry(5)
        assert (entry.valid, entry.destination_mac) == (True, MACS[1]), "none answers: as before"
        fixture.events.tell(Neighbour(OUTER, "10.3.0.1", MACS[3]))
        await settle()
        assert fixture.entry(5).destination_mac == MACS[3]

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_a_neighbour_that_ceases_to_answer_is_asked_for_once_more() -> None:
    async def scene(fixture: Fixture) -> None:
        for _ in range(3):
            fixture.events.tell(Neighbour(OUTER, "10.3.0.1", None))
            await settle()
        assert fixture.kernel.watched == [(OUTER, "10.3.0.1")] * 2, "at adoption, when it failed"

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_neighbours_in_use_are_probed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE_S", 0.02)
    monkeypatch.setattr(neighbours, "MAX_PROBES", 2)

    async def scene(fixture: Fixture) -> None:
        for number in range(3):
            fixture.nexthops.reserved(number + 1, 2, f"10.2.0.{number + 2}", 1500)
        fixture.events.tell(Neighbour(INNER, "10.2.0.99", MACS[2], fixed=True))
        await settle()
        fixture.nexthops.reserved(9, 2, "10.2.0.99", 1500)
        probed = fixture.kernel.probed
        for _ in range(500):
            if len(probed) >= 9:  # two turns a round
                break
            await asyncio.sleep(0.02)
        assert set(probed[:4]) == {(INNER, f"10.2.0.{n}") for n in (2, 3, 4)}
        assert fixture.entry(9).valid, "set by hand: used, and not asked for"

    play(scene)


def test_a_new_packet_process_gets_the_routes_and_what_was_to_retire() -> None:
    async def scene(fixture: Fixture) -> None:
        for _ in range(IDLE_PASSES):
            fixture.nexthops.swept({0})
        assert fixture.retired == [5]
        fixture.nexthops.reserved(6, 2, "10.2.0.2", 1500)
        fixture.datapath.write_nexthop(6, None)
        before = len(fixture.published)
        fixture.nexthops.republish()
        assert fixture.nexthops.entries.keys() == {5}
        await settle()
        assert (fixture.forgotten, len(fixture.published)) == (1, before + 1)
        fixture.events.tell(Neighbour(OUTER, "10.3.0.1", MACS[3]))
        await settle()
        assert fixture.entry(5).destination_mac == MACS[3]

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_an_interface_that_was_made_anew_is_bound_again() -> None:
    async def scene(fixture: Fixture) -> None:
        assert fixture.nexthops.lost() == []
        fixture.events.tell(LinkGone(OUTER), LinkGone(77))
        await settle()
        assert fixture.nexthops.lost() == ["interface eth11 is gone"]
        anew = Link(99, "eth11", MACS[3], True, 1500)
        fixture.kernel.known_links[0] = anew
        fixture.kernel.known_routes[0] = KernelRoute(DEFAULT.network, (KernelHop(99, "10.3.0.1"),))
        fixture.kernel.known_neighbours = [Neighbour(99, "10.3.0.1", MACS[2])]
        fixture.events.tell(anew)
        await settle()
        assert fixture.nexthops.lost() == ["interface eth11 was made anew"]
        assert not fixture.entry(5).valid
        fixture.nexthops.rebind({99: 1, INNER: 2}, {1: (8, 0)})
        await settle()
        assert fixture.nexthops.lost() == []
        assert fixture.entry(5) == Nexthop(1, "10.3.0.1", True, 1500, MACS[3], MACS[2], (8, 0))
        assert fixture.kernel.watched[-1] == (99, "10.3.0.1")

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_an_interface_that_came_back_under_its_number_is_a_new_one() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.events.tell(LinkGone(OUTER), fixture.kernel.known_links[0])
        await settle()
        assert fixture.nexthops.lost() == ["interface eth11 was made anew"]

    play(scene)


def test_links_that_went_unheard_are_noticed() -> None:
    async def scene(fixture: Fixture) -> None:
        fixture.kernel.known_links.pop(0)
        fixture.events.tell(None)
        await settle()
        assert len(fixture.nexthops.lost()) == 1
        assert not fixture.entry(5).valid

    play(scene, {5: Nexthop(1, "10.3.0.1")})


def test_an_ipv6_neighbour_fills_its_entry() -> None:
    async def scene(fixture: Fixture) -> None:
        network = IPv6Network("::/0")
        fixture.events.tell(
            RouteSet(KernelRoute(network, (KernelHop(OUTER, "fe80::1"),)), replaces=False)
        )
        fixture.nexthops.reserved(3, 1, "fe80::1", 1500)
        fixture.events.tell(
            Neighbour(INNER, "fe80::1", MACS[3]), Neighbour(OUTER, "fe80::1", MACS[2])
        )
        await settle()
        assert fixture.entry(3) == Nexthop(1, "fe80::1", True, 1500, MACS[0], MACS[2])

    play(scene)
