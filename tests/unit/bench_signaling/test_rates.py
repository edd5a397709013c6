from typing import Any, cast

import pytest

from tests.bench_signaling.effort import Effort
from tests.bench_signaling.rates import LATE_S, climb, holds
from tests.bench_signaling.rig import Rig


class Answering:
    """Holds up to a rate."""

    def __init__(self, best: float) -> None:
        self.best = best

    def send(self, rate: float, seconds: float, *, kept: bool) -> dict[str, Any]:
        assert kept
        late = 0.0 if rate <= self.best else 2 * LATE_S
        return {"rate": rate, "offers": 5, "statuses": {"201": 5}, "wall_s": seconds + late}


@pytest.mark.parametrize(
    ("best", "asked"),
    [
        (1000, [700, 1000, 1300, 500]),
        (1600, [700, 1000, 1300, 1600, 800]),
        (500, [700]),
    ],
)
def test_the_climb_ends_at_the_first_rate_that_does_not_hold(best: int, asked: list[int]) -> None:
    place = cast(Rig, Answering(best))
    found = climb(place, Effort(rates=(700, 1000, 1300, 1600)), kept=True)
    half = [found["half"]] if found["half"] else []
    assert [step["rate"] for step in [*found["steps"], *half]] == asked
    assert (found["best"] or {}).get("rate") == (best if half else None)


def test_one_offer_that_is_not_answered_is_too_many() -> None:
    step = {"offers": 5, "statuses": {"201": 4, "503": 1}, "wall_s": 1.0}
    assert not holds(step, 1.0)
