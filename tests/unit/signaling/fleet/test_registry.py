import asyncio
import logging
from collections import Counter
from collections.abc import Collection

import pytest

from relayctl.wire.address import Address
from relayctl.wire.cluster import Clusters
from relayctl.wire.registration import Registration
from signaling.fleet.announcements import Announcements, Reading, Silent
from signaling.fleet.control import Control
from signaling.fleet.registry import MAX_ASKED, MAX_NEWCOMERS, OLD_S, Registry
from signaling.fleet.steering import FULL, Transceiver
from tests.unit.signaling.fake_transceiver import (
    ENDPOINT,
    FakeTransceiver,
    configuration,
    fleet,
)

pytestmark = pytest.mark.anyio
CLUSTERS: Clusters = configuration().routing()
OTHER = ("10.2.0.3", 5000)
ABSENT = ("10.2.0.4", 5000)


def registry(fake: FakeTransceiver, seen: list[Transceiver]) -> Registry:
    return Registry(Control(fleet(fake)), [ENDPOINT], CLUSTERS, seen.append)


async def test_nobody_is_ready_before_being_asked() -> None:
    (transceiver,) = registry(FakeTransceiver(), []).transceivers()
    assert transceiver == Transceiver(ENDPOINT, 7, ready=False)


async def test_refresh_tells_changes_once() -> None:
    fake, seen = FakeTransceiver(calls=3), list[Transceiver]()
    asked = registry(fake, seen)
    await asked.refresh()
    await asked.refresh()
    fake.ready = False
    await asked.refresh()
    assert [(each.ready, each.load) for each in seen] == [(True, 0.3), (False, 0.3)]


async def test_one_that_was_never_ready_is_told_with_its_reason() -> None:
    fake, seen = FakeTransceiver(ready=False), list[Transceiver]()
    asked = registry(fake, seen)
    await asked.refresh()
    await asked.refresh()
    assert [(each.ready, each.reason) for each in seen] == [(False, "status 503")]


async def test_out_holds_until_the_next_refresh() -> None:
    asked = registry(FakeTransceiver(), [])
    await asked.refresh()
    asked.out(ENDPOINT, full=True)
    assert [(each.ready, each.load) for each in asked.transceivers()] == [(False, FULL)]
    await asked.refresh()
    assert [(each.ready, each.load) for each in asked.transceivers()] == [(True, 0.0)]


async def test_run_keeps_asking_until_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signaling.fleet.registry.INTERVAL_S", 0.01)
    fake, changed = FakeTransceiver(ready=False), asyncio.Event()

    def told(transceiver: Transceiver) -> None:
        if transceiver.ready:
            changed.set()

    asked = Registry(Control(fleet(fake)), [ENDPOINT], CLUSTERS, told)
    running = asyncio.create_task(asked.run())
    await asyncio.sleep(0.05)
    assert not changed.is_set()
    fake.ready = True
    async with asyncio.timeout(5):
        await changed.wait()
    running.cancel()


class Said(Announcements):
    """What Redis would say; None while it is silent."""

    def __init__(self) -> None:
        self.entries: dict[Address, Registration] | None = {}
        self.ignored = Counter[str]()
        self.rooms: list[int] = []

    async def read(self, known: Collection[Address], room: int = 0) -> Reading:
        self.rooms.append(room)
        if self.entries is None:
            raise Silent("TimeoutError")
        return Reading(dict(self.entries), self.ignored)


def entry(calls: int = 0, *, draining: bool = False) -> Registration:
    return Registration(7, calls, 10, draining=draining)


class Site:
    """A registry that lives by Redis, and the transceivers that can be reached."""

    def __init__(self, *fakes: FakeTransceiver, listed: Collection[Address] = ()) -> None:
        self.said = Said()
        self.seen: list[Transceiver] = []
        self.ignored = Counter[str]()
        self.now = 100.0
        self.fakes = list(fakes)
        self.registry = Registry(
            Control(fleet(*fakes)),
            listed,
            CLUSTERS,
            self.seen.append,
            announcements=self.said,
            on_ignored=lambda reason, count: self.ignored.update({reason: count}),
            clock=lambda: self.now,
        )

    def reach(self, *fakes: FakeTransceiver) -> None:
        """Only these from now on."""
        self.registry._control = Control(fleet(*fakes))

    async def refresh(self) -> None:
        self.now += 1
        await self.registry.refresh()

    @property
    def known(self) -> dict[Address, tuple[bool, float]]:
        return {t.endpoint: (t.ready, t.load) for t in self.registry.transceivers()}


async def test_an_entry_counts_once_its_address_has_answered() -> None:
    site = Site(FakeTransceiver(calls=2))
    site.said.entries = {ENDPOINT: entry(9), ABSENT: entry()}
    await site.refresh()
    assert site.known == {ENDPOINT: (True, 0.2)}  # as it said itself
    await site.refresh()
    assert site.known == {ENDPOINT: (True, 0.9)}
    assert [(each.endpoint, each.ready) for each in site.seen] == [(ENDPOINT, True)]


async def test_a_newcomer_that_is_not_ready_is_none_yet() -> None:
    fake = FakeTransceiver(ready=False)
    site = Site(fake)
    site.said.entries = {ENDPOINT: entry()}
    await site.refresh()
    assert site.known == {}
    fake.ready = True
    await site.refresh()
    assert site.known == {ENDPOINT: (True, 0.0)}


async def test_a_draining_one_takes_no_calls() -> None:
    site = Site(FakeTransceiver())
    site.said.entries = {ENDPOINT: entry()}
    await site.refresh()
    site.said.entries = {ENDPOINT: entry(draining=True)}
    await site.refresh()
    assert site.known == {ENDPOINT: (False, 0.0)}
    assert site.seen[-1].reason == "draining"


async def test_the_last_list_stands_while_redis_is_silent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "signaling.fleet.registry")
    site = Site(FakeTransceiver())
    site.said.entries = {ENDPOINT: entry(4)}
    await site.refresh()
    await site.refresh()
    site.said.entries = None
    for _ in range(3):
        await site.refresh()
    assert site.registry.silent
    assert site.known == {ENDPOINT: (True, 0.4)}
    site.said.entries = {ENDPOINT: entry(5)}
    await site.refresh()
    assert not site.registry.silent
    assert site.known == {ENDPOINT: (True, 0.5)}
    assert [record.message for record in caplog.records] == [
        "redis is silent (TimeoutError); 1 transceivers stand",
        "redis answers again",
    ]


async def test_those_drawn_are_asked_once_their_figures_are_old() -> None:
    fake, other = FakeTransceiver(), FakeTransceiver(OTHER)
    site = Site(fake, other)
    site.said.entries = {ENDPOINT: entry(), OTHER: entry()}
    await site.refresh()
    site.said.entries = None
    fake.calls, other.ready = 7, False
    drawn = site.registry.transceivers()
    assert await site.registry.confirm(drawn) == list(drawn)  # fresh: nobody is asked
    site.now += OLD_S
    (confirmed,) = await site.registry.confirm(drawn)
    assert (confirmed.endpoint, confirmed.load) == (ENDPOINT, 0.7)
    fake.calls = 8
    (again,) = await site.registry.confirm([confirmed])
    assert again.load == 0.7  # once in a while
    other.ready = True
    await site.refresh()
    assert site.known[OTHER] == (True, 0.0)  # it was in doubt, and was asked


async def test_redis_was_emptied_and_everybody_answers() -> None:
    site = Site(FakeTransceiver())
    site.said.entries = {ENDPOINT: entry()}
    await site.refresh()
    site.said.entries = {}
    for _ in range(3):
        await site.refresh()
        assert site.known == {ENDPOINT: (True, 0.0)}
    assert len(site.seen) == 1


async def test_who_is_in_redis_no_more_and_does_not_answer_is_gone() -> None:
    site = Site(FakeTransceiver())
    site.said.entries = {ENDPOINT: entry()}
    await site.refresh()
    site.said.entries = {}
    site.reach()
    await site.refresh()
    assert site.known == {}
    assert [each.ready for each in site.seen] == [True, False]
    site.registry.out(ENDPOINT)  # a call that was under way
    assert site.known == {}


async def test_who_fails_a_call_is_out_until_it_answers_whatever_redis_says() -> None:
    fake = FakeTransceiver()
    site = Site(fake)
    site.said.entries = {ENDPOINT: entry()}
    await site.refresh()
    site.registry.out(ENDPOINT)
    site.reach()
    for _ in range(3):
        await site.refresh()
        assert site.known == {ENDPOINT: (False, 0.0)}
    site.reach(fake)
    await site.refresh()
    assert site.known == {ENDPOINT: (True, 0.0)}
    assert [each.ready for each in site.seen] == [True, False, True]


async def test_one_of_the_list_is_asked_and_not_looked_up() -> None:
    site = Site(FakeTransceiver(calls=1), listed=[ENDPOINT])
    site.said.entries = {ENDPOINT: entry(9, draining=True)}
    await site.refresh()
    await site.refresh()
    assert site.known == {ENDPOINT: (True, 0.1)}
    assert [each.ready for each in site.seen] == [True]


async def test_newcomers_wait_for_their_turn() -> None:
    many = {("10.2.0.9", port): entry() for port in range(10_000, 10_000 + MAX_ASKED * 2)}
    site = Site(FakeTransceiver())
    site.said.entries = {**many, ENDPOINT: entry()}
    for _ in range(2):
        await site.refresh()
        assert site.known == {}
    site.said.entries = {}
    await site.refresh()  # the last of the queue
    assert site.known == {ENDPOINT: (True, 0.0)}
    assert site.said.rooms[:2] == [MAX_NEWCOMERS, MAX_NEWCOMERS - MAX_ASKED - 1]


async def test_what_was_of_no_use_is_told() -> None:
    site = Site()
    site.said.ignored = Counter(foreign=3)
    await site.refresh()
    assert site.ignored == {"foreign": 3}


async def test_a_fault_of_ours_does_not_end_the_asking(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("signaling.fleet.registry.INTERVAL_S", 0.01)
    asked, rounds = registry(FakeTransceiver(), []), asyncio.Queue[None]()

    async def refresh() -> None:
        rounds.put_nowait(None)
        raise LookupError("a fault")

    monkeypatch.setattr(asked, "refresh", refresh)
    running = asyncio.create_task(asked.run())
    async with asyncio.timeout(5):
        for _ in range(3):
            await rounds.get()
    running.cancel()
    assert "what is known stands" in caplog.text
