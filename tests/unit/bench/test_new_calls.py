import pytest

from tests.bench.new_calls import Calls


@pytest.mark.parametrize(
    ("echoed", "installed", "lost"), [(50, 50, 0), (49, 50, 1), (50, 48, 2), (0, 0, 50)]
)
def test_a_call_without_flow_or_without_echo_is_lost(
    echoed: int, installed: int, lost: int
) -> None:
    calls = Calls(50, 1e3, echoed, installed, slowest_ns=1.0, cpu_ns=1.0, reasons={})
    assert calls.lost == lost


@pytest.mark.parametrize(("rate", "slowest_ns"), [(20e3, 1.0), (30e3, 150e6), (90e3, 350e6)])
def test_a_queue_in_the_end_counts_as_time(rate: float, slowest_ns: float) -> None:
    calls = Calls(9000, rate, 9000, 9000, slowest_ns, cpu_ns=50e3, reasons={})
    assert calls.carried == pytest.approx(20e3)
