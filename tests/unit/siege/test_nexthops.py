"""What a change may cost: the packets of its own time."""

import pytest

from tests.siege.nexthops import Change

RATE = 20_000.0


@pytest.mark.parametrize(
    ("seconds", "stale", "excess"), [(0.010, 200, 0), (0.010, 260, 0), (0.010, 261, 1), (0.0, 0, 0)]
)
def test_packets_beyond_the_change(seconds: float, stale: int, excess: int) -> None:
    assert Change(seconds, stale).excess(RATE) == excess
