import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.histogram import STEPS, lower_edge, percentile


def step_of(ns: int) -> int:
    """As sink.c does it, in other words: the first step above `ns`, less one."""
    return next(step for step in range(STEPS) if lower_edge(step + 1) > ns)


def test_edges_rise_without_gaps() -> None:
    edges = [lower_edge(step) for step in range(STEPS)]
    assert edges == sorted(set(edges))
    assert edges[:33] == list(range(33))


@given(st.integers(32, 10**9))
def test_a_step_is_at_most_a_thirty_second_wide(ns: int) -> None:
    step = step_of(ns)
    low, high = lower_edge(step), lower_edge(step + 1)
    assert low <= ns < high
    assert high - low <= max(1, low / 32)


def test_percentiles_of_known_delays() -> None:
    counts = [0] * STEPS
    for ns, times in ((1000, 98), (50_000, 1), (1_000_000, 1)):
        counts[step_of(ns)] += times
    assert percentile(counts, 50) == pytest.approx(1000, rel=0.04)
    assert percentile(counts, 99) == pytest.approx(50_000, rel=0.04)
    assert percentile(counts, 100) == pytest.approx(1_000_000, rel=0.04)


def test_a_percentile_lies_within_its_step_by_its_share() -> None:
    counts = [0] * STEPS
    counts[step_of(1 << 20)] = 100
    low, high = lower_edge(step_of(1 << 20)), lower_edge(step_of(1 << 20) + 1)
    assert percentile(counts, 25) == low + (high - low) / 4


def test_no_probe_is_an_error() -> None:
    with pytest.raises(ValueError, match="no probe"):
        percentile([0] * STEPS, 50)
