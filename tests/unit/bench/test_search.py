import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.search import LOSSLESS, RESOLUTION, Offer, highest_lossless


@given(st.floats(1e3, 1e7), st.floats(0.2, 1.2))
def test_finds_the_capacity_whatever_the_guess(capacity: float, misguess: float) -> None:
    found = highest_lossless(
        lambda rate: Offer(rate, 0.0 if rate <= capacity else 0.3), capacity / misguess
    )
    assert capacity * (1 - 2 * RESOLUTION) <= found <= capacity or misguess > 1.2


def test_a_rate_that_passes_the_second_time_passes() -> None:
    tries: dict[float, int] = {}

    def flaky(rate: float) -> Offer:
        tries[rate] = tries.get(rate, 0) + 1
        return Offer(rate, 0.5 if tries[rate] == 1 or rate > 1000 else 0.0)

    assert highest_lossless(flaky, 1000) == pytest.approx(1000, rel=2 * RESOLUTION)


def test_loss_at_every_rate_is_zero() -> None:
    assert highest_lossless(lambda rate: Offer(rate, 2 * LOSSLESS), 1e6) == 0.0


def test_what_was_offered_counts_not_what_was_asked_for() -> None:
    assert highest_lossless(lambda rate: Offer(rate * 0.9, 0.0), 1000) <= 0.9 * 1300
