"""Memory of a call, beside stock aiortc; and what 1,000 calls that came and went leave behind.

Twice as many come and go first: the process remembers the last 1,024 ended calls, and its garbage
collector looks for cycles the more rarely the more there is.
"""

import statistics
import time
from functools import partial

from tests.bench_media.effort import Effort
from tests.bench_media.rig import Rig
from tests.bench_media.step import Bench, bench
from tests.bench_media.subjects import ECHO, MIRROR, PION, STOCK, Kind
from tests.figures.measurement import Findings, Measurement
from tests.report import Target

INTERVAL_MS = 160.0  # of packets: every call has its codecs at work and none is late
_TALK_S = 2.4
_SETTLE_S = 0.5
_BATCH = 100  # calls that come and go together
_CHURN_TALK_S = 0.1
MEMORY = (Target("memory_per_call_vs_stock", "≤", 0.5, "x"),)
GROWTH = (Target("growth_over_churn", "≤", 1024.0, "bytes per call"),)


def measurements(effort: Effort) -> list[Measurement]:
    return [
        Measurement("memory", MEMORY, partial(measure_memory, effort)),
        Measurement("growth", GROWTH, partial(measure_growth, effort)),
    ]


def measure_memory(effort: Effort) -> Findings:
    found: dict[str, list[dict[str, float]]] = {}
    with Rig() as rig:
        for _ in range(effort.rounds):
            for kind in (STOCK, ECHO):
                found.setdefault(kind.key, []).append(_of_a_call(rig, kind, effort.held))
        for kind in (MIRROR, PION):
            found.setdefault(kind.key, []).append(_of_a_call(rig, kind, effort.held))
    pairs = zip(found[ECHO.key], found[STOCK.key], strict=True)
    ratio = statistics.median(ours["anonymous"] / stock["anonymous"] for ours, stock in pairs)
    return Findings({"memory_per_call_vs_stock": ratio}, {"calls": effort.held, "bytes": found})


def _of_a_call(rig: Rig, kind: Kind, calls: int) -> dict[str, float]:
    """Bytes a call, and of the process without any."""
    with bench(rig, kind) as on:
        on.warm_up()
        time.sleep(_SETTLE_S)
        before = on.subject.memory()
        on.callers.connect(calls).all_there(calls)
        on.callers.talk(_TALK_S, warm_s=0, interval_ms=INTERVAL_MS)
        after = on.subject.memory()
        on.callers.close()
    each = {name: (after[name] - before[name]) / calls for name in before}
    return {**each, "process": float(before["anonymous"])}


def measure_growth(effort: Effort) -> Findings:
    batch = min(_BATCH, effort.churn // 4)
    with Rig() as rig, bench(rig, ECHO) as on:
        sizes = [_size_after(on, batch) for _ in range(effort.churn * 3 // batch)]
    first, last = sizes[: -effort.churn // batch], sizes[-effort.churn // batch :]
    detail = {"batch": batch, "warming": first, "measured": last}
    return Findings({"growth_over_churn": slope(last) / batch}, detail)


def _size_after(on: Bench, calls: int) -> int:
    """Bytes of anonymous memory after so many more calls came and went."""
    on.callers.connect(calls).all_there(calls)
    on.callers.talk(_CHURN_TALK_S, warm_s=0)
    on.callers.close()
    return on.subject.memory()["anonymous"]


def slope(sizes: list[int]) -> float:
    """Growth from one to the next: the median of all pairs' slopes, so that a step does not count
    as a trend (Theil, Sen)."""
    return statistics.median(
        (sizes[b] - sizes[a]) / (b - a) for a in range(len(sizes)) for b in range(a + 1, len(sizes))
    )
