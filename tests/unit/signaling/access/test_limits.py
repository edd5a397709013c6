import pytest
from hypothesis import given
from hypothesis import strategies as st

from signaling.access.limits import Buckets, network_of


def test_a_bucket_holds_a_minutes_worth_and_fills_evenly() -> None:
    buckets = Buckets()
    assert [buckets.take("a", 3, 100.0) for _ in range(4)] == [0, 0, 0, 20]
    assert buckets.take("a", 3, 119.0) == 1
    assert buckets.take("a", 3, 120.0) == 0
    assert buckets.take("a", 3, 120.0) == 20
    assert [buckets.take("a", 3, 900.0) for _ in range(4)] == [0, 0, 0, 20]


def test_buckets_do_not_share() -> None:
    buckets = Buckets()
    assert buckets.take("a", 1, 0.0) == 0
    assert buckets.take("b", 1, 0.0) == 0
    assert buckets.take("a", 1, 0.0) == 60


def test_asking_takes_nothing() -> None:
    buckets = Buckets()
    assert [buckets.wait("a", 1, 0.0) for _ in range(3)] == [0, 0, 0]
    buckets.take("a", 1, 0.0)
    assert buckets.wait("a", 1, 30.5) == 30


def test_a_refused_one_costs_nothing() -> None:
    buckets = Buckets()
    buckets.take("a", 1, 0.0)
    for _ in range(50):
        buckets.take("a", 1, 1.0)
    assert buckets.take("a", 1, 60.0) == 0


def test_no_limit_keeps_nothing() -> None:
    buckets = Buckets()
    assert not any(buckets.take("a", 0, 0.0) for _ in range(1000))
    assert len(buckets) == 0


def test_the_table_is_bounded_and_forgets_who_was_away_longest() -> None:
    buckets = Buckets(size=2)
    for name in ("a", "b", "b", "a", "c"):  # b goes
        buckets.take(name, 2, 0.0)
    assert len(buckets) == 2
    assert buckets.take("a", 2, 0.0) == 30
    assert buckets.take("b", 2, 0.0) == 0


@given(
    rate=st.integers(1, 1000),
    steps=st.lists(st.floats(0, 10, allow_nan=False), min_size=1, max_size=200),
)
def test_never_more_than_a_minutes_worth_and_what_filled_since(
    rate: int, steps: list[float]
) -> None:
    buckets, now, taken = Buckets(), 0.0, 0
    for step in steps:
        now += step
        taken += buckets.take("a", rate, now) == 0
        assert taken <= rate + now * rate / 60 + 1e-6


@given(rate=st.integers(1, 1000), begin=st.floats(0, 1e6))
def test_whoever_waits_as_told_gets_one(rate: int, begin: float) -> None:
    buckets = Buckets()
    while not (wait_s := buckets.take("a", rate, begin)):
        pass
    assert buckets.take("a", rate, begin + wait_s) == 0


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::", "2001:db8:1:2::"),
        ("", ""),
    ],
)
def test_a_client_is_an_address_or_a_64(host: str, network: str) -> None:
    assert network_of(host) == network
