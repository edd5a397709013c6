"""Goes over the flow table: ends flows that are over, and collects what one pass can tell.

Runs in the control process in slices, so that nothing else waits for a large table. A flow is
deleted only after its stamps were read again: its client may have spoken since.
"""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from relayctl.datapath.base import Datapath, Nexthop
from relayctl.flow import Expiry, Flow, FlowKey, State, expiry
from relayctl.hints import HintIndex, difference
from relayctl.messages import PER_PART, HintsChange, Message, RerouteFlows
from relayctl.routes import Routes

SLICE = 2048  # flows between two looks at the rest of the process
PAUSE_S = 1.0  # between passes, as long as one is short
MAX_ASTRAY = 4096  # flows led back to the route table per pass
SHARE = 10  # a pass may take a tenth of the time

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Pass:
    """What one look at every flow found."""

    states: Counter[State] = field(default_factory=Counter)
    ended: Counter[Expiry] = field(default_factory=Counter)
    used: set[int] = field(default_factory=set)  # nexthop indices in live flows
    astray: list[FlowKey] = field(default_factory=list)  # flows that left the route table
    hints: HintIndex = field(default_factory=HintIndex)


class Sweeper:
    """One pass a second, less often when the table is large."""

    def __init__(
        self,
        datapath: Datapath,
        send: Callable[[Message], bool],
        now: Callable[[], int],
        routing: Callable[[], tuple[Routes, Mapping[int, Nexthop]] | None],
        swept: Callable[[Pass], None],
    ) -> None:
        """`now` gives a stamp. `routing`: the routes and entries that flows have to agree with,
        None where there are none. `swept` gets every finished pass."""
        self._datapath = datapath
        self._send = send
        self._now = now
        self._routing = routing
        self._swept = swept
        self._sent: dict[int, FlowKey] = {}
        self.last = Pass()
        self.ended: Counter[Expiry] = Counter()

    async def run(self) -> None:
        """Sweep until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            await self.sweep()
            await asyncio.sleep(max(PAUSE_S, SHARE * (loop.time() - started)))

    async def sweep(self) -> None:
        """One whole pass."""
        found = Pass()
        flows = iter(self._datapath.flows.items())
        while part := list(itertools.islice(flows, SLICE)):
            self._look_at(part, found)
            await asyncio.sleep(0)
        self.last = found
        self.ended.update(found.ended)
        self._send_hints(found.hints.result())
        for at in range(0, len(found.astray), PER_PART):
            self._send(RerouteFlows(tuple(found.astray[at : at + PER_PART])))
        self._swept(found)

    def _look_at(self, flows: Sequence[tuple[FlowKey, Flow]], found: Pass) -> None:
        now = self._now()
        routing = self._routing()
        for key, flow in flows:
            if expiry(flow, now) and self._end(key, now, found):
                continue
            found.states[flow.state] += 1
            found.used.update((flow.nexthop_in, flow.nexthop_out))
            found.hints.see(key, flow)
            if routing and len(found.astray) < MAX_ASTRAY and not _follows(key, flow, *routing):
                found.astray.append(key)

    def _end(self, key: FlowKey, now: int, found: Pass) -> bool:
        flow = self._datapath.flows.get(key)
        reason = expiry(flow, now) if flow else None
        if reason is None or not self._datapath.flows.delete(key):
            return flow is None
        found.ended[reason] += 1
        return True

    def _send_hints(self, hints: dict[int, FlowKey]) -> None:
        """Tell what changed. What finds the pipe full is told after the next pass."""
        added, removed = difference(self._sent, hints)
        for at in range(0, len(removed), PER_PART):
            part = removed[at : at + PER_PART]
            if self._send(HintsChange(removed=tuple(part))):
                for ssrc in part:
                    del self._sent[ssrc]
        entries = list(added.items())
        for at in range(0, len(entries), PER_PART):
            news = entries[at : at + PER_PART]
            if self._send(HintsChange(added=tuple((ssrc, *key) for ssrc, key in news))):
                self._sent.update(news)


def _follows(key: FlowKey, flow: Flow, routes: Routes, entries: Mapping[int, Nexthop]) -> bool:
    """Whether both nexthops of a flow are those that the route table names."""
    for host, index in ((flow.endpoint[0], flow.nexthop_in), (key.client[0], flow.nexthop_out)):
        way, entry = routes.find(host), entries.get(index)
        wanted = (way.port, way.gateway) if way and way.port else None
        if way is not None and wanted != (entry and (entry.port, entry.gateway)):
            return False
    return True
