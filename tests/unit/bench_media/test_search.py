import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench_media.search import RESOLUTION, most


@given(st.integers(1, 3000), st.floats(0.3, 3.0))
def test_finds_the_limit_whatever_the_guess(limit: int, misguess: float) -> None:
    found = most(lambda calls: calls <= limit, round(limit * misguess), 4000)
    assert limit - max(1, RESOLUTION * limit) < found <= limit


@given(st.integers(1, 30), st.integers(1, 30))
def test_a_small_limit_is_found_to_the_call(limit: int, guess: int) -> None:
    assert most(lambda calls: calls <= limit, guess, 4000) == limit


def test_not_even_one_is_zero() -> None:
    assert most(lambda calls: False, 50, 4000) == 0


@pytest.mark.parametrize("guess", [1, 7, 100, 5000])
def test_never_above_the_ceiling(guess: int) -> None:
    tried: list[int] = []

    def holds(calls: int) -> bool:
        tried.append(calls)
        return True

    assert most(holds, guess, 100) == max(tried) == 100


def test_a_coarser_search_takes_fewer_steps() -> None:
    tried: dict[float, int] = {}
    for resolution in (0.03, 0.1):

        def holds(calls: int, at: float = resolution) -> bool:
            tried[at] = tried.get(at, 0) + 1
            return calls <= 613

        most(holds, 500, 4000, resolution)
    assert tried[0.1] < tried[0.03]
