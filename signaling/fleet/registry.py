"""Which transceivers take calls: a list of the configuration, and those that stand in Redis.

Each one of the list is asked once a second. What stands in Redis is believed once its address has
answered as a transceiver does; while Redis is silent, the last reading holds. In doubt are those
that failed a call or refused one, and those that Redis has no more: out until they say themselves
that they are ready.
"""

import asyncio
import dataclasses
import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterable

from relayctl.wire.address import Address
from relayctl.wire.cluster import Clusters
from relayctl.wire.registration import Registration
from signaling.fleet.announcements import Announcements, Silent
from signaling.fleet.control import READY_S, UNREACHABLE, Control, Readiness
from signaling.fleet.steering import FULL, Transceiver

INTERVAL_S = 1.0
OLD_S = 3.0  # what is known for longer is no figure to place a call by
CONFIRM_S = 0.1  # a call waits so long for those it drew to be asked
MAX_ASKED = 128  # newcomers, and as many of those in doubt, in one round
MAX_NEWCOMERS = 1024  # that wait for being asked; a page of Redis goes beyond it
MAX_KNOWN = 4096  # transceivers out of Redis

log = logging.getLogger("signaling.fleet.registry")


class Registry:
    """The transceivers and their readiness. `on_change`: one is ready, or is no more.
    `on_ignored`: entries of Redis that were of no use, by why."""

    def __init__(
        self,
        control: Control,
        endpoints: Iterable[Address],
        clusters: Clusters,
        on_change: Callable[[Transceiver], None] = lambda transceiver: None,
        *,
        announcements: Announcements | None = None,
        on_ignored: Callable[[str, int], None] = lambda reason, count: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._control = control
        self._clusters = clusters
        self._on_change = on_change
        self._announcements = announcements
        self._on_ignored = on_ignored
        self._clock = clock
        self._listed = dict.fromkeys(endpoints)
        self._transceivers = {endpoint: self._new(endpoint) for endpoint in self._listed}
        self._seen_at: dict[Address, float] = {}
        self._doubted: dict[Address, None] = {}  # in the order in which they are asked
        self._newcomers: dict[Address, None] = {}
        self._gone: frozenset[Address] = frozenset()  # known, and not in the last reading
        self._silent = False

    def transceivers(self) -> tuple[Transceiver, ...]:
        return tuple(self._transceivers.values())

    @property
    def silent(self) -> bool:
        """Redis did not answer the last time."""
        return self._silent

    def out(self, endpoint: Address, reason: str = UNREACHABLE, *, full: bool = False) -> None:
        """It failed a call, or took none for this `reason`: no more until it says it is ready."""
        if endpoint in self._transceivers:  # else it is gone meanwhile
            load = FULL if full else self._transceivers[endpoint].load
            self._set(endpoint, Readiness(False, load, reason))
            self._doubted.setdefault(endpoint)

    async def confirm(self, drawn: Collection[Transceiver]) -> list[Transceiver]:
        """Those of `drawn` that take calls now: asked, if what is known of them is old."""
        oldest = self._clock() - OLD_S
        old = [t.endpoint for t in drawn if self._seen_at.get(t.endpoint, oldest) <= oldest]
        if old:
            await self._ask(old, CONFIRM_S)
        now = (self._transceivers.get(transceiver.endpoint) for transceiver in drawn)
        return [transceiver for transceiver in now if transceiver is not None and transceiver.free]

    async def refresh(self) -> None:
        """Read Redis; ask every transceiver of the list, some in doubt and some new ones."""
        await asyncio.gather(self._read(), self._ask(self._listed))
        await self._ask([*_first(self._doubted), *_first(self._newcomers)])

    async def run(self) -> None:
        """Keep asking; ends when it is cancelled."""
        while True:
            try:
                await self.refresh()
            except Exception:
                log.exception("looking for transceivers failed; what is known stands")
            await asyncio.sleep(INTERVAL_S)

    async def _read(self) -> None:
        if self._announcements is None:
            return
        known = self._transceivers.keys() - self._listed.keys()
        room = min(MAX_NEWCOMERS - len(self._newcomers), MAX_KNOWN - len(known))
        try:
            reading = await self._announcements.read(known, room)
        except Silent as error:
            if not self._silent:
                log.warning("redis is silent (%s); %d transceivers stand", error, len(known))
            self._silent = True
            return
        if self._silent:
            log.info("redis answers again")
        self._silent = False
        for reason, count in reading.ignored.items():
            self._on_ignored(reason, count)
        self._gone = frozenset(known - reading.found.keys())
        self._doubted.update(dict.fromkeys(self._gone))
        for endpoint, registration in reading.found.items():
            self._hear(endpoint, registration)

    def _hear(self, endpoint: Address, registration: Registration) -> None:
        if endpoint in self._listed or endpoint in self._doubted:
            return
        if endpoint in self._transceivers:
            reason = "draining" if registration.draining else ""
            self._set(endpoint, Readiness(not reason, registration.load, reason))
        else:
            self._newcomers.setdefault(endpoint)

    async def _ask(self, endpoints: Collection[Address], within_s: float = READY_S) -> None:
        async def answer(endpoint: Address) -> None:
            self._take(endpoint, await self._control.readiness(endpoint, within_s))

        await asyncio.gather(*map(answer, endpoints))

    def _take(self, endpoint: Address, answer: Readiness) -> None:
        """What a transceiver says of itself."""
        known = endpoint in self._transceivers
        self._newcomers.pop(endpoint, None)
        self._doubted.pop(endpoint, None)
        if known or answer.ready:
            self._set(endpoint, answer)
        if answer.ready or not known or endpoint in self._listed:
            return
        if endpoint in self._gone and answer.reason == UNREACHABLE:
            del self._transceivers[endpoint], self._seen_at[endpoint]
        else:
            self._doubted[endpoint] = None  # as the last one

    def _set(self, endpoint: Address, now: Readiness) -> None:
        before = self._transceivers.get(endpoint) or self._new(endpoint)
        after = dataclasses.replace(before, ready=now.ready, load=now.load, reason=now.reason)
        self._transceivers[endpoint] = after
        self._seen_at[endpoint] = self._clock()
        if (before.ready, before.reason) != (after.ready, after.reason):
            self._on_change(after)

    def _new(self, endpoint: Address) -> Transceiver:
        return Transceiver(endpoint, self._clusters.owner(endpoint) or 0, ready=False)


def _first(endpoints: Iterable[Address]) -> Iterable[Address]:
    return itertools.islice(endpoints, MAX_ASKED)
