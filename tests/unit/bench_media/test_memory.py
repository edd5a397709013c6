import pytest

from tests.bench_media.measured.memory import slope


def test_one_step_is_no_trend() -> None:
    assert slope([100, 100, 100, 100, 900, 900, 900, 900, 900, 900, 900, 900]) == 0.0


def test_steady_growth_is_found_through_noise() -> None:
    noise = [0, 3, -2, 1, 0, -3, 2, 0]
    assert slope([1000 + 50 * n + noise[n] for n in range(8)]) == pytest.approx(50, abs=2)
