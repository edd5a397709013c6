"""How many offers a second one core of signaling answers, and how soon it does at half of that.

API keys, limits, the registry and the first look at an offer are on; every offer comes over a
connection of its own. A rate holds when every offer is answered 201 and the last answer is not
later than `LATE_S` after the last offer: then no queue has grown.
"""

from functools import partial
from typing import Any

from tests.bench_signaling.effort import Effort
from tests.bench_signaling.rig import Rig, rig
from tests.figures.measurement import Findings, Measurement, expect
from tests.report import Target

LATE_S = 0.25
TARGETS = (
    Target("offers_per_second", "≥", 1000, "offers/s"),
    Target("offers_answered_at_half_p99", "≤", 50, "ms"),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("offers_per_second", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    with rig() as place:
        place.send(effort.rates[0] / 2, effort.step_s)  # connections, caches, first-time code
        steps = climb(place, effort)
        held = [step for step in steps if holds(step, effort.step_s)]
        expect(held, f"not even {effort.rates[0]} offers a second: {steps[-1]}")
        half = place.send(held[-1]["rate"] / 2, effort.half_s)
    expect(half["statuses"] == {"201": half["offers"]}, f"at half: {half['statuses']}")
    return Findings(
        {
            "offers_per_second": held[-1]["answers_per_s"],
            "offers_answered_at_half_p99": half["ms"]["p99"],
        },
        {"steps": steps, "half": half},
    )


def climb(place: Rig, effort: Effort) -> list[dict[str, Any]]:
    """Rates one after another, up to the first that does not hold."""
    steps: list[dict[str, Any]] = []
    for rate in effort.rates:
        steps.append(place.send(rate, effort.step_s))
        if not holds(steps[-1], effort.step_s):
            break
    return steps


def holds(step: dict[str, Any], seconds: float) -> bool:
    answered = step["statuses"] == {"201": step["offers"]}
    return bool(answered and step["wall_s"] <= seconds + LATE_S)
