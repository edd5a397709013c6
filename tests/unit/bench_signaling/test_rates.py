from typing import Any, cast

import pytest

from tests.bench_signaling.effort import Effort
from tests.bench_signaling.rates import LATE_S, climb, holds
from tests.bench_signaling.rig import Rig


class Answering:
    """Holds up to a rate."""

    def __init__(self, best: float) -> None:
        self.best = best

    def send(self, rate: float, seconds: float) -> dict[str, Any]:
        late = 0.0 if rate <= self.best else 2 * LATE_S
        return {"rate": rate, "offers": 5, "statuses": {"201": 5}, "wall_s": seconds + late}


@pytest.mark.parametrize(
    ("best", "asked"), [(1000, [700, 1000, 1300]), (1600, [700, 1000, 1300, 1600])]
)
def test_the_climb_ends_at_the_first_rate_that_does_not_hold(best: int, asked: list[int]) -> None:
    place = cast(Rig, Answering(best))
    steps = climb(place, Effort(rates=(700, 1000, 1300, 1600)))
    assert [step["rate"] for step in steps] == asked
    assert [step["rate"] for step in steps if holds(step, Effort().step_s)][-1] == best


def test_one_offer_that_is_not_answered_is_too_many() -> None:
    step = {"offers": 5, "statuses": {"201": 4, "503": 1}, "wall_s": 1.0}
    assert not holds(step, 1.0)
