"""What the program itself takes for a hit, by test runs."""

from dataclasses import asdict
from functools import partial

from tests.bench import hit_cost
from tests.bench.effort import Effort
from tests.bench.hit_cost import HitBench
from tests.bench.measured.ways import SPP, stage_of
from tests.bench.rig import Rig
from tests.bench.subjects.ferryline import Ferryline
from tests.figures.measurement import Findings, Measurement
from tests.report import Target

WARM, MANY, MOST = 1, 1 << 18, 1 << 20  # flows
TARGETS = (
    Target("hit_ns", "≤", 110.0, "ns"),
    Target("hit_256k_ns", "≤", 480.0, "ns"),
    Target("hit_256k_vs_lookup", "≤", 1.15),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("program", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    costs: dict[int, hit_cost.HitCost] = {}
    with Rig() as rig, stage_of(rig, SPP, max_flows=MOST) as stage:
        assert isinstance(stage.subject, Ferryline)
        bench = HitBench(rig, stage.subject, SPP.legs[0].frame)
        try:
            for flows in (WARM, MANY, MOST):
                with stage.on(flows):
                    costs[flows] = bench.measure(flows, effort.rounds)
        finally:
            bench.close()
        instructions = stage.subject.loaded.instructions
    many = costs[MANY]
    return Findings(
        {
            "hit_ns": costs[WARM].hit_over_floor,
            "hit_256k_ns": many.hit_over_floor,
            "hit_256k_vs_lookup": many.hit_over_floor / many.lookup_over_floor,
        },
        {
            "verified_instructions": instructions,
            "costs": [
                asdict(cost)
                | {
                    "hit_over_floor": cost.hit_over_floor,
                    "bracket": cost.bracket,
                    "lookup_over_floor": cost.lookup_over_floor,
                }
                for cost in costs.values()
            ],
        },
    )
