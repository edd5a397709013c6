"""New calls: authentic first packets of clients nobody knows, into the real service.

Each is judged by the program, handed up, opened and routed by the packet process, installed, and
sent on to the endpoint, where it is counted. Every packet carries the time, so the delays say
whether the process keeps up or only its socket buffer fills.

The rate is that of the packet process, which has a core for itself. The program hands up no more
than its budget, 24,000 per CPU and unit of time, and all the generator's frames are of one CPU: so
a trial is short enough for one unit, and a queue that it leaves counts as time.
"""

import contextlib
import time
from dataclasses import dataclass

from relayctl.datapath.base import DatapathError
from relayctl.datapath.xdp import open_readonly, unload
from relayctl.flow import KEY_V4
from relayctl.reason import Reason
from tests.bench import flow_opening, rates, search, wire
from tests.bench.generator import Generator
from tests.bench.histogram import percentile
from tests.bench.rig import Rig
from tests.bench.search import Offer
from tests.bench.sink import Sink
from tests.bench.subjects import legs
from tests.bench.subjects.process import ProcessRelay
from tests.bench.subjects.socket_relay import INSTANCE, serve
from tests.bench.wire import ENDPOINT_PORT

CALLS = 20_000  # at most in a trial: within what one CPU may hand up in one unit of time
TRIAL_S = 0.4
BURST = 5_000
BEHIND_NS = 50e6  # the slowest of a trial may take so long; more is a growing queue
_TOKENS = 1 << 17  # all that the generator has room for; then they come round
_UNIT_NS = 1 << 30
_PATIENCE_S = 3.0
_TOLD_S = 1.1  # the packet process tells its counters once a second
_TOGETHER = 50  # frames of a burst that leaves at once


@dataclass(frozen=True, slots=True)
class Calls:
    """What became of some first packets."""

    sent: int
    rate: float  # offered a second
    echoed: int  # counted at the endpoint
    installed: int
    slowest_ns: float
    cpu_ns: float  # of the packet process, for each
    reasons: dict[str, int]  # what program and packet process say of them; only of a burst

    @property
    def lost(self) -> int:
        return self.sent - min(self.echoed, self.installed)

    @property
    def carried(self) -> float:
        """Calls a second from the first that was sent to the last that arrived: what a process
        takes that is behind in the end, however much was offered."""
        return self.sent / (self.sent / self.rate + self.slowest_ns / 1e9)


class NewCalls:
    """The service with the XDP datapath on the rig. A context manager by `close`."""

    def __init__(self, rig: Rig) -> None:
        """Raises `NotRun` if the service does not come up."""
        first = wire.from_client(4, flow_opening.binding_request(bytes(24)))
        self._next = 0
        self._generator = Generator(
            *(rig, [(first, "gen0")]),
            tokens=flow_opening.tokens(_TOKENS),
            token_at=first.head + flow_opening.TOKEN_AT,
        )
        watch = legs.to_port(4, ENDPOINT_PORT, first.stamp_at + legs.SPP_SIZE)
        self._sink = Sink(rig, "sink0", watch)
        self._sink.attach()
        self._relay = ProcessRelay(rig, [], "relay", serve("xdp"), ready=_is_attached)
        unload(INSTANCE)
        self._relay.carry(0)
        self._datapath = open_readonly(INSTANCE)
        deadline = time.monotonic() + _PATIENCE_S
        while not self._knows_the_way() and time.monotonic() < deadline:
            time.sleep(0.02)

    def _knows_the_way(self) -> bool:
        """A first call has taught it the way to the endpoint."""
        self.offer(1, 100.0)
        return any(nexthop.valid for nexthop in self._datapath.nexthops().values())

    def offer(self, count: int, rate: float | None) -> Calls:
        """`count` calls of new clients at `rate` a second (None: at once)."""
        _fresh_unit()
        seen, delays = self._sink.seen(), self._sink.delays()
        spent, reasons = self._spent(), self._datapath.reasons()
        first = self._next
        sent = self._generator.send(
            count,
            rate=rate,
            flows=count,
            probes=1,
            in_order=True,
            first=first,
            burst=1 if rate else _TOGETHER,
        )
        self._next += sent.frames
        echoed = self._settled(sent.frames, seen.packets)
        counts = [b - a for a, b in zip(delays, self._sink.delays(), strict=True)]
        return Calls(
            sent.frames,
            sent.rate,
            echoed,
            self._installed(first, sent.frames),
            percentile(counts, 100),
            (self._spent() - spent) / sent.frames,
            {} if rate else self._since(reasons),
        )

    def sustained(self) -> float:
        """The highest rate at which none is lost and none falls behind."""

        def offer(rate: float) -> Offer:
            calls = self.offer(min(CALLS, round(rate * TRIAL_S)), rate)
            time.sleep(0.2)  # what this trial left behind is not the next one's
            behind = calls.slowest_ns > BEHIND_NS
            return Offer(calls.carried, 1.0 if behind else max(0, calls.lost) / calls.sent)

        guess = self.offer(BURST, None).carried  # more than it takes, so batches are large
        return search.highest_lossless(offer, guess)

    def _installed(self, first: int, count: int) -> int:
        """How many of these clients have a flow."""
        wanted = range(first, first + count)
        return sum(
            wire.number_of(keys[at : at + 4], keys[at + 4 : at + 6]) in wanted
            for keys, _ in self._datapath.flows.batches()
            for at in range(0, len(keys), KEY_V4.size)
        )

    def _since(self, before: dict[Reason, int]) -> dict[str, int]:
        time.sleep(_TOLD_S)
        after = self._datapath.reasons()
        return {r.label: n - before[r] for r, n in after.items() if n != before[r]}

    def _spent(self) -> int:
        return rates.run_time_ns(self._relay.pids()[-1:])

    def _settled(self, wanted: int, before: int) -> int:
        deadline = time.monotonic() + _PATIENCE_S
        while (echoed := self._sink.seen().packets - before) < wanted:
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        return echoed

    def close(self) -> None:
        self._datapath.close()
        self._relay.stop()
        unload(INSTANCE)
        self._sink.close()
        self._generator.close()


def _is_attached() -> bool:
    try:
        with contextlib.closing(open_readonly(INSTANCE)) as datapath:
            return bool(datapath.attached())
    except DatapathError:  # not pinned yet
        return False


def _fresh_unit() -> None:
    """The budgets of the program are by units of time: begin with one."""
    now = time.monotonic_ns()
    time.sleep((_UNIT_NS - now % _UNIT_NS) / 1e9 + 0.01)
