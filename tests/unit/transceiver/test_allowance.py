import pytest

from transceiver.allowance import Allowance


def taken(allowance: Allowance, now: float, tries: int = 1000) -> int:
    return sum(allowance.take(now) for _ in range(tries))


def test_a_burst_and_then_the_rate() -> None:
    allowance = Allowance(rate=50, burst=10)
    assert taken(allowance, 1000.0) == 10
    assert taken(allowance, 1000.1) == 5
    assert taken(allowance, 1000.1) == 0


def test_nothing_is_saved_up_beyond_the_burst() -> None:
    allowance = Allowance(rate=50, burst=10)
    assert taken(allowance, 5000.0) == 10


@pytest.mark.parametrize("rate", [49, 50])
def test_who_keeps_to_the_rate_is_never_refused(rate: int) -> None:
    allowance = Allowance(rate=50, burst=10)
    assert all(allowance.take(1000.0 + n / rate) for n in range(2000))


def test_who_exceeds_it_gets_the_rate() -> None:
    allowance = Allowance(rate=50, burst=10)
    got = sum(allowance.take(1000.0 + n / 200) for n in range(2000))  # ten seconds
    assert got == pytest.approx(10 + 500, abs=2)
