import pytest

from tests.soak.flat import Bound, trend

BOUND = Bound(0.1, 5.0)


def series(*values: float) -> list[tuple[float, float]]:
    return [(5.0 * n, value) for n, value in enumerate(values)]


def test_a_level_line_is_flat() -> None:
    found = trend(series(*[100.0] * 40), BOUND)
    assert found.flat
    assert (found.start, found.end, found.slope) == (100.0, 100.0, 0.0)
    assert found.bound == 10.0


def test_a_line_that_rises_is_not() -> None:
    found = trend(series(*[100.0 + n for n in range(40)]), BOUND)
    assert not found.flat
    assert found.slope == pytest.approx(720)
    assert found.rise == pytest.approx(29)


def test_what_rises_in_the_warm_up_alone_is() -> None:
    assert trend(series(*[10.0 * n for n in range(10)], *[100.0] * 30), BOUND).flat


def test_one_busy_moment_does_not_decide() -> None:
    assert trend(series(*[100.0] * 39, 140.0), BOUND).flat


def test_a_step_in_the_middle_that_stays_does() -> None:
    assert not trend(series(*[100.0] * 25, *[120.0] * 15), BOUND).flat


def test_a_small_start_has_a_bound_too() -> None:
    assert trend(series(*[1.0] * 20, *[4.0] * 20), BOUND).flat


def test_a_run_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="3 samples"):
        trend(series(1.0, 1.0, 1.0), BOUND)
