import pytest

from tests.bench_signaling.own_share import Share
from tests.bench_signaling.setup_time import account, own_share, quantiles
from tests.figures.measurement import MeasurementError


def test_phases_follow_each_other_and_the_ideal_is_four_round_trips() -> None:
    call = {"answer": 45.0, "ice": 90.0, "dtls": 180.0, "rtp": 190.0}
    found = account([call, call], rtt_ms=40.0)
    assert found["ideal_ms"] == 160.0
    assert found["total"]["p50"] == 190.0
    assert found["extra"]["p50"] == 30.0
    assert [found["phases"][name]["p50"] for name in found["phases"]] == [45.0, 45.0, 90.0, 10.0]


def test_p95_is_near_the_slow_end() -> None:
    values = [float(n) for n in range(101)]
    assert quantiles(values) == {"p50": 50.0, "p95": 95.0}
    assert quantiles([3.0]) == {"p50": 3.0, "p95": 3.0}


def test_nothing_seen_is_no_figure() -> None:
    with pytest.raises(MeasurementError):
        own_share([4.0], Share(check_ms=[1.0]))
    assert own_share([4.0], Share([1.0], [2.0]))["flight"]["p50"] == 2.0
