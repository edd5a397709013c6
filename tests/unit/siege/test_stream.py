"""The stream that the sink tells from other traffic."""

import pytest

from tests.kernel.packets import frame, spp_header
from tests.siege import flood, stream
from tests.siege.stream import MARK, PAYLOAD, Seen, burst_for

CLIENT, VIP = ("10.1.0.2", 40000), ("203.0.113.10", 3478)


def test_the_mark_stands_where_the_sink_looks() -> None:
    """Behind the header that the relay puts in front."""
    arrived = frame(("10.2.0.1", 7000), ("10.2.0.2", 5001), spp_header(CLIENT, VIP) + PAYLOAD)
    at = stream._MARK_AT
    assert arrived[at : at + 8] == MARK


@pytest.mark.parametrize(
    ("rate", "burst"), [(None, flood.BURST), (1_000.0, 1), (150_000.0, 3), (9e6, flood.BURST)]
)
def test_a_steady_rate_goes_in_small_bursts(rate: float | None, burst: int) -> None:
    assert burst_for(rate) == burst


def test_packets_are_right_and_stale_ones() -> None:
    assert Seen(right=3, stale=2).packets == 5
