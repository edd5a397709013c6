"""What the relay carries without loss, against a bare redirect of the same frames: each direction,
each mode, each mix of families."""

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from relayctl.datapath.spec import Mode
from tests.bench import rates
from tests.bench.effort import Effort
from tests.bench.rig import Rig
from tests.bench.subjects import legs
from tests.bench.subjects.bare import Bare
from tests.bench.subjects.base import Leg
from tests.bench.subjects.ferryline import Ferryline
from tests.bench.trial import Stage
from tests.figures.measurement import Findings, Measurement
from tests.report import Target

FLOWS = 1024


@dataclass(frozen=True)
class Way:
    """One way to use the relay."""

    name: str
    legs: tuple[Leg, ...]
    options: dict[str, Any] = field(default_factory=dict)


SPP = Way("SPP", (legs.forward(),))
TRANSPARENT = Way("transparent", (legs.forward(spp=False),), {"transparent": True})
MIXES = tuple(
    Way(
        f"SPP, IPv{outer} → IPv{inner}",
        (legs.forward(outer, inner),),
        {"outer": outer, "inner": inner},
    )
    for outer, inner in legs.MIXES
)
ASIDE = (
    Way("SPP, return", (legs.back(),)),
    Way("SPP, both ways at once", (legs.forward(), legs.back())),
    Way("transparent, return", (legs.back_plain(),), {"transparent": True}),
    Way("SPP, generic XDP", (legs.forward(),), {"mode": Mode.GENERIC}),
)
TARGETS = (
    Target("spp_vs_bare", "≥", 0.85),
    Target("transparent_vs_bare", "≥", 0.93),
    Target("mixes_vs_bare", "≥", 0.78),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("ways", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    with Rig() as rig:
        found = {way.name: compare(rig, way, effort.pairs) for way in (SPP, TRANSPARENT, *MIXES)}
        found |= {way.name: compare(rig, way, effort.side_pairs) for way in ASIDE}
    return Findings(
        {
            "spp_vs_bare": found[SPP.name].ratio,
            "transparent_vs_bare": found[TRANSPARENT.name].ratio,
            "mixes_vs_bare": min(found[way.name].ratio for way in MIXES),
        },
        {
            "ways": {
                name: {"ratio": pairs.ratio, "rate": pairs.best, **asdict(pairs)}
                for name, pairs in found.items()
            }
        },
    )


def compare(rig: Rig, way: Way, pairs: int, flows: int = FLOWS) -> rates.Pairs:
    with stage_of(rig, way) as subject, open_stage(rig, Bare(rig, way.legs)) as bare:
        return rates.in_turn(subject, bare, flows, pairs)


@contextlib.contextmanager
def stage_of(rig: Rig, way: Way, **options: Any) -> Iterator[Stage]:
    relay = Ferryline(rig, way.legs, name=f"Ferryline, {way.name}", **way.options | options)
    with open_stage(rig, relay) as stage:
        yield stage


@contextlib.contextmanager
def open_stage(rig: Rig, subject: Any) -> Iterator[Stage]:
    stage = Stage(rig, subject)
    try:
        yield stage
    finally:
        stage.close()
