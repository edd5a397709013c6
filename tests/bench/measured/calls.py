"""How many new calls a second the service takes, and whether it loses any of a burst."""

from dataclasses import asdict
from functools import partial

from tests.bench.effort import Effort
from tests.bench.new_calls import BURST, NewCalls
from tests.bench.rig import Rig
from tests.figures.measurement import Findings, Measurement
from tests.report import Target

TARGETS = (
    Target("new_calls", "≥", 20_000.0, "/s"),
    Target("burst_lost", "=", 0),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("calls", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    with Rig() as rig:
        service = NewCalls(rig)
        try:
            bursts = [service.offer(BURST, None) for _ in range(effort.side_pairs)]
            sustained = service.sustained()
        finally:
            service.close()
    return Findings(
        {"new_calls": sustained, "burst_lost": sum(burst.lost for burst in bursts)},
        {"bursts": [asdict(burst) for burst in bursts]},
    )
