import pytest

from tests.bench.generator import LARGEST_BURST, burst_for


@pytest.mark.parametrize(
    ("rate", "burst"), [(None, LARGEST_BURST), (1_000, 1), (500_000, 10), (1e8, LARGEST_BURST)]
)
def test_a_burst_is_what_falls_into_its_time(rate: float | None, burst: int) -> None:
    assert burst_for(rate) == burst
