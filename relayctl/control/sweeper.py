"""Goes over the flow table: ends flows that are over, and collects what one pass can tell.

Runs in the control process in slices, so that nothing else waits for a large table. A flow is
deleted only after its stamps were read again: its client may have spoken since.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from relayctl.control import hint_table
from relayctl.control.astray import Ways
from relayctl.control.flow_slice import Bools, Column, FlowSlice, slices
from relayctl.control.hint_table import HintTable
from relayctl.datapath.base import Datapath, Nexthop
from relayctl.flow import Expiry, FlowKey, Prefixes, State, expiry
from relayctl.hints import CAPACITY
from relayctl.messages import PER_PART, HintsChange, Message, RerouteFlows
from relayctl.routes import Routes

ENDS = 256  # flows ended between two looks at the rest of the process
PAUSE_S = 1.0  # between passes, as long as one is short
MAX_PAUSE_S = 10.0
SHARE = 10  # a pass may take a tenth of the time
MAX_ASTRAY = 4096  # flows led back to the route table per pass
MAX_HINTS = 4096  # changes of hints told per pass


@dataclass(slots=True)
class Pass:
    """What one look at every flow found. Families are IP versions."""

    flows: Counter[tuple[int, State]] = field(default_factory=Counter)
    ended: Counter[Expiry] = field(default_factory=Counter)
    used: set[int] = field(default_factory=set)  # nexthop indices in live flows
    astray: list[FlowKey] = field(default_factory=list)  # flows that left the route table
    hints: HintTable = field(default_factory=HintTable)
    took_s: float = 0.0
    finished: float = 0.0  # CLOCK_MONOTONIC

    @property
    def states(self) -> Counter[State]:
        """Flows of both families."""
        found: Counter[State] = Counter()
        for (_, state), count in self.flows.items():
            found[state] += count
        return found


class Witness(Protocol):
    """Whoever wants to see every flow."""

    def begin(self) -> None:
        """A pass begins."""
        ...

    def see(self, flows: FlowSlice, alive: Bools) -> None: ...


class Sweeper:
    """One pass a second, less often when the table is large."""

    def __init__(
        self,
        datapath: Datapath,
        send: Callable[[Message], bool],
        now: Callable[[], int],
        routing: Callable[[], tuple[Routes, Mapping[int, Nexthop]] | None],
        swept: Callable[[Pass], None],
        prefixes: Prefixes | None = None,
        witness: Witness | None = None,
    ) -> None:
        """`now` gives a stamp. `routing`: the routes and entries that flows have to agree with,
        None where there are none. `swept` gets every finished pass, `witness` all that is seen."""
        self._datapath = datapath
        self._send = send
        self._now = now
        self._routing = routing
        self._swept = swept
        self._prefixes = prefixes or {}
        self._witness = witness
        self._told = hint_table.NONE  # hints that the packet process has
        self.last = Pass()
        self.ended: Counter[Expiry] = Counter()

    async def run(self, is_held: Callable[[], bool] = lambda: False) -> None:
        """Sweep until cancelled, but not while it is held."""
        while True:
            if not is_held():
                await self.sweep()
            await asyncio.sleep(min(max(PAUSE_S, SHARE * self.last.took_s), MAX_PAUSE_S))

    def forget_hints(self) -> None:
        """The packet process is a new one, and knows none."""
        self._told = hint_table.NONE.copy()

    async def sweep(self) -> None:
        """One whole pass."""
        found, started = Pass(), time.monotonic()
        routing = self._routing()
        ways = Ways(*routing, self._prefixes) if routing else None
        used = np.zeros(1 << 16, bool)
        if self._witness:
            self._witness.begin()
        for keys, values in slices(self._datapath.flows.batches()):
            flows = FlowSlice(keys, values)
            alive = await self._end_what_is_over(flows, found)
            self._count(flows, alive, found, used)
            found.hints.see(flows, alive)
            if self._witness:
                self._witness.see(flows, alive)
            if ways and len(found.astray) < MAX_ASTRAY:
                astray = np.flatnonzero(ways.astray(flows) & alive)
                room = MAX_ASTRAY - len(found.astray)
                found.astray.extend(flows.key(at) for at in astray[:room].tolist())
            await asyncio.sleep(0)
        found.used = set(np.flatnonzero(used).tolist())
        self.ended.update(found.ended)
        await self._tell_hints(found.hints)
        for at in range(0, len(found.astray), PER_PART):
            part = found.astray[at : at + PER_PART]
            self._send(RerouteFlows(tuple((key.client, key.vip) for key in part)))
        found.finished = time.monotonic()
        found.took_s = found.finished - started
        self.last = found
        self._swept(found)

    async def _end_what_is_over(self, flows: FlowSlice, found: Pass) -> Bools:
        """Which flows are still there."""
        now = self._now()
        alive = ~flows.over(now)
        for number, at in enumerate(np.flatnonzero(~alive).tolist(), 1):
            alive[at] = not self._end(flows.key(at), now, found)
            if not number % ENDS:
                await asyncio.sleep(0)
        return alive

    def _end(self, key: FlowKey, now: int, found: Pass) -> bool:
        flow = self._datapath.flows.get(key)
        reason = expiry(flow, now) if flow else None
        if reason is None or not self._datapath.flows.delete(key):
            return flow is None
        found.ended[reason] += 1
        return True

    def _count(self, flows: FlowSlice, alive: Bools, found: Pass, used: Bools) -> None:
        confirmed = int(np.count_nonzero(flows.confirmed() & alive))
        found.flows[flows.version, State.CONFIRMED] += confirmed
        found.flows[flows.version, State.NEW] += int(np.count_nonzero(alive)) - confirmed
        for name in ("nexthop_in", "nexthop_out"):
            used[flows.values[name][alive]] = True

    async def _tell_hints(self, found: HintTable) -> None:
        """Tell what changed, as much as one pass may; the rest follows after the next one."""
        told = self._told
        added, removed = hint_table.difference(told, found.result())
        removed = await self._tell(removed[:MAX_HINTS], _removal)
        added = await self._tell(added[: min(MAX_HINTS, CAPACITY - len(told))], _addition)
        if self._told is told:  # not forgotten meanwhile
            self._told = hint_table.changed(told, added, removed)

    async def _tell(self, rows: Column, message: Callable[[Column], Message]) -> Column:
        """The rows that went out before the pipe was full."""
        for at in range(0, len(rows), PER_PART):
            if not self._send(message(rows[at : at + PER_PART])):
                return rows[:at]
            await asyncio.sleep(0)
        return rows


def _removal(rows: Column) -> HintsChange:
    return HintsChange(removed=tuple(rows["ssrc"].tolist()))


def _addition(rows: Column) -> HintsChange:
    return HintsChange(
        added=tuple((ssrc, key.client, key.vip) for ssrc, key in hint_table.hints(rows))
    )
