from dataclasses import replace

import pytest

from tests.bench_media.step import LATE_MS, LOST, Step

STEP = Step(
    calls=10,
    late_p50_ms=0.1,
    late_p99_ms=LATE_MS,
    loss=LOST,
    trip_p50_ms=0.5,
    trip_p99_ms=3.0,
    seconds=3.0,
    cpu_s=0.3,
    packets=1500,
    octets=80.0,
    fec=0.5,
    own_late_p99_ms=0.2,
    own_cpu=0.1,
)


def test_the_limits_themselves_hold() -> None:
    assert STEP.holds


@pytest.mark.parametrize(
    ("late", "loss", "near"),
    [(20.1, 0.0, True), (0.0, 0.002, True), (200.0, 0.0, False), (0.0, 0.1, False)],
)
def test_late_or_lossy_does_not_hold(late: float, loss: float, near: bool) -> None:
    step = replace(STEP, late_p99_ms=late, loss=loss)
    assert not step.holds
    assert step.nearly_holds is near


def test_cost_of_a_call_is_that_of_its_packets() -> None:
    assert STEP.cpu_per_packet_us == pytest.approx(200.0)
    assert STEP.cpu_per_call == pytest.approx(0.01)
