"""What the calls had of a stretch of time: the longest gap, the packets that never came. Pure.

Gaps are between arrivals at the far end: upwards the transceiver's interface, downwards the
client's. A packet is lost when it was sent in the window and did not arrive until the drain after.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from tests.chaos.tap import End, Seen

DRAIN_S = 0.5  # at the end of a window: packets of it may be under way
ALIVE_S = 1.0  # at the end of a window, in which a call has to carry a fifth of its packets
OUTAGE_S = 0.08  # a gap that is longer than any without the fault by less is none
_ALIVE_PACKETS = 10

Look = Callable[[End, bool, int], Seen]


@dataclass(frozen=True)
class Window:
    """Seconds of `time.monotonic()`. `exact`: a gap before it does not count."""

    began: float
    ended: float
    exact: bool = False


@dataclass(frozen=True)
class Caller:
    kind: str
    up: int  # SSRC of the client
    down: int


@dataclass(frozen=True)
class Way:
    """One direction of one call in a window."""

    sent: int
    lost: int
    gap_s: float
    last_outage: float  # when the last gap or loss of note was over; the window's beginning if none
    alive: bool


@dataclass(frozen=True)
class Account:
    kind: str
    up: Way
    down: Way

    @property
    def alive(self) -> bool:
        return self.up.alive and self.down.alive


def account(
    callers: Iterable[Caller], look: Look, window: Window, usual_s: float = 0.02
) -> list[Account]:
    """`usual_s`: the longest gap without a fault."""
    outage_s = usual_s + OUTAGE_S

    def ways(ssrc: int, near: End, far: End) -> Way:
        return way(look(near, True, ssrc), look(far, False, ssrc), window, outage_s)

    return [
        Account(
            caller.kind,
            ways(caller.up, "client", "transceiver"),
            ways(caller.down, "transceiver", "client"),
        )
        for caller in callers
    ]


def way(sent: Seen, received: Seen, window: Window, outage_s: float = 0.02 + OUTAGE_S) -> Way:
    """A gap of over `outage_s` is an outage."""
    last_sent = window.ended - DRAIN_S
    due = (sent.times >= window.began) & (sent.times <= last_sent)
    came = received.times >= window.began - DRAIN_S
    missing = due.copy()
    missing[due] = ~np.isin(sent.numbers[due], received.numbers[came])
    edges = _edges(received.times, window)
    gaps = np.diff(edges)
    long = edges[1:][gaps > outage_s]
    last_outage = max([window.began, *long[-1:], *sent.times[missing][-1:]])
    at_end = np.count_nonzero(
        (received.times > window.ended - ALIVE_S) & (received.times <= window.ended)
    )
    return Way(
        int(np.count_nonzero(due)),
        int(np.count_nonzero(missing)),
        float(gaps.max()),
        float(last_outage),
        bool(at_end >= _ALIVE_PACKETS),
    )


def _edges(times: np.ndarray, window: Window) -> np.ndarray:
    """Arrivals in the window between its ends; its beginning is the last arrival before it, unless
    it is exact."""
    first, last = np.searchsorted(times, [window.began, window.ended])
    began = window.began if window.exact or not first else times[first - 1]
    return np.concatenate([[began], times[first:last], [window.ended]])


def columns(
    control: Sequence[Account], fault: Sequence[Account], began: float
) -> dict[str, float | int]:
    """The difference that the fault made, by column; see `tests.chaos.scenario`. Both are of the
    same calls; `began` is when the fault did."""
    found: dict[str, float | int] = {}
    for kind in ("", *sorted({each.kind for each in fault})):
        chosen = [n for n, each in enumerate(fault) if kind in ("", each.kind)]
        some = _columns([control[n] for n in chosen], [fault[n] for n in chosen], began)
        found |= {f"{name}_{kind}" if kind else name: value for name, value in some.items()}
    return found


def _columns(
    control: Sequence[Account], fault: Sequence[Account], began: float
) -> dict[str, float | int]:
    without, with_ = totals(control), totals(fault)
    more = {name: max(0, round(with_[name] - without[name], 1)) for name in with_}
    ends = [way.last_outage for each in fault for way in (each.up, each.down)]
    lost = [b.alive and not f.alive for b, f in zip(control, fault, strict=True)]
    sent = sum(each.up.sent + each.down.sent for each in fault)
    return more | {
        "lost_share": round(100 * (more["lost_up"] + more["lost_down"]) / max(1, sent), 3),
        "calls_lost": sum(lost),
        "recovery": round(max(0.0, max(ends, default=began) - began), 3),
    }


def totals(accounts: Sequence[Account]) -> dict[str, float | int]:
    """Gaps in ms and losses as they were, no difference taken."""
    gaps: Mapping[str, list[float]] = {
        "up": [1e3 * each.up.gap_s for each in accounts] or [0.0],
        "down": [1e3 * each.down.gap_s for each in accounts] or [0.0],
    }
    return {
        **{f"gap_{name}_p50": round(median(found), 1) for name, found in gaps.items()},
        **{f"gap_{name}_max": round(max(found), 1) for name, found in gaps.items()},
        "lost_up": sum(each.up.lost for each in accounts),
        "lost_down": sum(each.down.lost for each in accounts),
    }
