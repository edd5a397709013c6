"""How many offers a second one core of signaling answers, and how soon it does at half of that.

API keys, limits, the registry and the first look at an offer are on. The targets are for offers
that come as through a balancer that ends TLS, over connections that it keeps; how many can come
over a connection of their own each, as from browsers without a balancer, is told beside it. A rate
holds when every offer is answered 201 and the last answer is not later than `LATE_S` after the last
offer: then no queue has grown.
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
        kept = climb(place, effort, kept=True)
        new = climb(place, effort, kept=False)
    expect(kept["half"], f"not even {effort.rates[0]} offers a second: {kept['steps'][-1]}")
    half = kept["half"]
    expect(half["statuses"] == {"201": half["offers"]}, f"at half: {half['statuses']}")
    return Findings(
        {
            "offers_per_second": kept["best"]["answers_per_s"],
            "offers_answered_at_half_p99": half["ms"]["p99"],
        },
        {"kept": kept, "new": new},
    )


def climb(place: Rig, effort: Effort, *, kept: bool) -> dict[str, Any]:
    """Rates one after another, up to the first that does not hold, and half of the best one."""
    steps: list[dict[str, Any]] = []
    best = half = None
    for rate in effort.rates:
        steps.append(place.send(rate, effort.step_s, kept=kept))
        if not holds(steps[-1], effort.step_s):
            break
        best = steps[-1]
    if best is not None:
        half = place.send(best["rate"] / 2, effort.half_s, kept=kept)
    return {"steps": steps, "best": best, "half": half}


def holds(step: dict[str, Any], seconds: float) -> bool:
    answered = step["statuses"] == {"201": step["offers"]}
    return bool(answered and step["wall_s"] <= seconds + LATE_S)
