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
