"""What the relay adds to the delay, against a bare redirect at the same share of its rate."""

import statistics
from functools import partial
from typing import Any

from tests.bench import rates
from tests.bench.effort import Effort
from tests.bench.measured.ways import FLOWS, SPP, open_stage, stage_of
from tests.bench.rig import Rig
from tests.bench.subjects.bare import Bare
from tests.bench.trial import Stage
from tests.figures.measurement import Findings, Measurement
from tests.report import Target

HALF = 50  # percent: the load of the targets
TARGETS = (Target("latency_p50_vs_bare", "≤", 1.2), Target("latency_p99_vs_bare", "≤", 1.5))

Rounds = dict[int, list[rates.Latency]]  # by load


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("latency", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    found: dict[str, Rounds] = {"bare": {}, "SPP": {}}
    with (
        Rig() as rig,
        stage_of(rig, SPP) as subject,
        open_stage(rig, Bare(rig, SPP.legs)) as bare,
    ):
        for _ in range(effort.pairs):
            _round(bare, found["bare"])
            _round(subject, found["SPP"])
    return Findings(
        {
            "latency_p50_vs_bare": _ratio(found, "p50"),
            "latency_p99_vs_bare": _ratio(found, "p99"),
        },
        {"latency": {name: _medians(rounds) for name, rounds in found.items()}},
    )


def _round(stage: Stage, found: Rounds) -> None:
    with stage.on(FLOWS):
        rate = rates.lossless_rate(stage, FLOWS).lossless
        for load in rates.LOADS:
            found.setdefault(load, []).append(rates.latency(stage, FLOWS, rate, load))


def _ratio(found: dict[str, Rounds], percentile: str) -> float:
    pairs = zip(found["SPP"][HALF], found["bare"][HALF], strict=True)
    return statistics.median(ours.ns[percentile] / bare.ns[percentile] for ours, bare in pairs)


def _medians(rounds: Rounds) -> dict[str, Any]:
    """For each load the medians of the rounds, and one histogram of all."""
    return {
        str(load): {
            "rate": statistics.median(each.rate for each in many),
            "ns": {p: statistics.median(each.ns[p] for each in many) for p in many[0].ns},
            "histogram": [sum(column) for column in zip(*(e.histogram for e in many), strict=True)],
        }
        for load, many in rounds.items()
    }
