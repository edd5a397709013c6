"""What it costs to set a call up, beside stock aiortc; and 200 callers at the same moment."""

import statistics
from functools import partial

from tests.bench_media.effort import Effort
from tests.bench_media.rig import Rig
from tests.bench_media.step import bench
from tests.bench_media.subjects import ECHO, PION, STOCK, Kind
from tests.figures.measurement import Findings, Measurement
from tests.report import Target

_AT_ONCE = 8  # set-ups under way: enough that the server is never idle
SETUPS = (
    Target("set_ups_per_second_and_core", ">", 0, "calls/s"),
    Target("cpu_per_set_up_vs_stock", "≤", 0.5, "x"),
)
SLOWEST_S = 2.0


def measurements(effort: Effort) -> list[Measurement]:
    at_once = (
        Target("at_once_connected", "=", effort.at_once, "calls"),
        Target("at_once_slowest", "≤", SLOWEST_S, "s"),
    )
    return [
        Measurement("set_ups", SETUPS, partial(measure_set_ups, effort)),
        Measurement("at_once", at_once, partial(measure_at_once, effort)),
    ]


def measure_set_ups(effort: Effort) -> Findings:
    found: dict[str, list[dict[str, float]]] = {}
    with Rig() as rig:
        for _ in range(effort.rounds):
            for kind, calls in ((STOCK, effort.stock_set_ups), (ECHO, effort.set_ups)):
                found.setdefault(kind.key, []).append(_set_up(rig, kind, calls))
        found[PION.key] = [_set_up(rig, PION, effort.set_ups)]
    ours, stock = found[ECHO.key], found[STOCK.key]
    ratios = [a["cpu_ms"] / b["cpu_ms"] for a, b in zip(ours, stock, strict=True)]
    return Findings(
        {
            "set_ups_per_second_and_core": statistics.median(each["rate"] for each in ours),
            "cpu_per_set_up_vs_stock": statistics.median(ratios),
        },
        {"set_ups": found},
    )


def _set_up(rig: Rig, kind: Kind, calls: int) -> dict[str, float]:
    """Per second, and CPU time in ms of one: offer, answer, ICE and DTLS."""
    with bench(rig, kind) as on:
        on.warm_up()
        before = on.subject.cpu_s()
        made = on.callers.connect(calls, at_once=_AT_ONCE)
        cpu_s = on.subject.cpu_s() - before
        made.all_there(calls)
        on.callers.close()
    return {
        "rate": calls / made.seconds,
        "cpu_ms": cpu_s / calls * 1e3,
        "p50_ms": statistics.median(made.setup_ms),
    }


def measure_at_once(effort: Effort) -> Findings:
    """Offers made beforehand; then every caller's first check at the same moment."""
    with Rig() as rig, bench(rig, ECHO) as on:
        on.warm_up()
        made = on.callers.connect(effort.at_once, at_once=effort.at_once, offers_first=True)
        on.callers.close()
    slowest = max(made.setup_ms, default=float("inf")) / 1e3
    detail = {"setup_ms": made.setup_ms, "failed": made.failed}
    return Findings({"at_once_connected": made.connected, "at_once_slowest": slowest}, detail)
