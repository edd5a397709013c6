import pytest

from relayctl.inspect.rates import per_s, with_rates
from relayctl.inspect.records import Record


def counts(**reasons: int) -> list[Record]:
    return [{"reason": reason, "count": count} for reason, count in reasons.items()]


@pytest.mark.parametrize(
    ("before", "after", "rate"), [(100, 300, 100.0), (100, 100, 0.0), (100, 50, 25.0)]
)
def test_rate(before: int, after: int, rate: float) -> None:
    [found] = with_rates(counts(forward=before), counts(forward=after), 2.0)
    assert found == {"reason": "forward", "count": after, "per_s": rate}


def test_a_new_reason_grew_from_nothing() -> None:
    [found] = with_rates([], counts(forward=8), 2.0)
    assert found["per_s"] == 4.0


def test_sum_of_reasons() -> None:
    found = with_rates([], counts(punt_first=8, punt_odd=2, drop_odd=100), 1.0)
    assert per_s(found, "punt_") == 10.0
    assert per_s(found, "punt_", "drop_") == 110.0
    assert per_s(found, "forward") == 0.0
