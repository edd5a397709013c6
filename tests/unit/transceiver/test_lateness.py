import pytest

from transceiver.lateness import LIMIT_MS, WINDOW_S, Lateness


def test_quantiles_in_whole_milliseconds_up() -> None:
    lateness = Lateness()
    for ms in range(100):
        lateness.add(ms / 1000 + 0.0005, 50.0)
    assert lateness.quantile(0.5, 50.0) == pytest.approx(0.05)
    assert lateness.quantile(0.99, 50.0) == pytest.approx(0.099)
    assert lateness.quantile(1.0, 50.0) == pytest.approx(0.1)


def test_nothing_is_not_late() -> None:
    assert Lateness().quantile(0.99, 1000.0) == 0


def test_early_is_punctual_and_very_late_has_a_bound() -> None:
    lateness = Lateness()
    lateness.add(-0.5, 1.0)
    assert lateness.quantile(0.99, 1.0) == pytest.approx(0.001)
    lateness.add(3600.0, 1.0, count=99)
    assert lateness.quantile(0.99, 1.0) == pytest.approx((LIMIT_MS + 1) / 1000)


def test_forgets_what_is_older_than_the_window() -> None:
    lateness = Lateness()
    lateness.add(0.1, 10.0)
    for second in range(11, 10 + WINDOW_S + 1):
        lateness.add(0.0, float(second), count=99)
        assert lateness.quantile(1.0, float(second)) == pytest.approx(0.101)
    assert lateness.quantile(1.0, 11.0 + WINDOW_S) == pytest.approx(0.001)
    assert lateness.quantile(1.0, 1e6) == 0
    lateness.add(0.002, 1e6)
    assert lateness.quantile(0.99, 1e6) == pytest.approx(0.003)
