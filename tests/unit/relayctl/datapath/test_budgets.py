import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.datapath.budgets import (
    CHARGES,
    KERNEL,
    SHARES,
    Budgets,
    Region,
    client_bucket,
    endpoint_bucket,
    token_bucket,
)
from relayctl.reason import PUNTS, Reason
from relayctl.wire.address import compact
from tests.unit.relayctl.packets import token


def test_a_counter_begins_anew_with_each_unit() -> None:
    budgets = Budgets({Region.TOKEN: 2})
    taken = [budgets.take(Region.TOKEN, stamp, 5) for stamp in (7, 7, 7, 8, 8, 8)]
    assert taken == [True, True, False] * 2


def test_buckets_and_regions_do_not_share() -> None:
    budgets = Budgets({Region.TOKEN: 1, Region.CLIENT: 1})
    assert budgets.take(Region.TOKEN, 7, 5)
    assert budgets.take(Region.TOKEN, 7, 6)
    assert budgets.take(Region.CLIENT, 7, 5)
    assert not budgets.take(Region.TOKEN, 7, 5)


def test_a_region_without_a_limit_is_free() -> None:
    assert all(Budgets().take(Region.FIRST, 7) for _ in range(20_000))


@pytest.mark.parametrize(
    ("punt", "refusal", "share", "rest", "limit"),
    [
        (Reason.PUNT_FIRST, Reason.DROP_TOKEN_BUDGET, 16, Reason.DROP_FIRST_BUDGET, 24_000),
        (Reason.PUNT_CONTENDED, Reason.DROP_TOKEN_BUDGET, 16, Reason.DROP_FIRST_BUDGET, 24_000),
        (Reason.PUNT_ORPHAN, Reason.DROP_ORPHAN_CLIENT_BUDGET, 64, Reason.DROP_ORPHAN_BUDGET, 2000),
        (Reason.PUNT_RETURN, Reason.DROP_RETURN_BUDGET, 2000, Reason.DROP_RETURN_BUDGET, 10_000),
    ],
)
def test_shares_come_before_what_a_cpu_has(
    punt: Reason, refusal: Reason, share: int, rest: Reason, limit: int
) -> None:
    budgets = Budgets(KERNEL)
    granted = [budgets.charge(punt, 7, 1) for _ in range(share + 50)]
    assert granted == [punt] * share + [refusal] * 50
    others = [budgets.charge(punt, 7, 2 + number // share) for number in range(limit)]
    assert others == [punt] * (limit - share) + [rest] * share  # refusals cost the CPU nothing


@pytest.mark.parametrize(
    ("punt", "refusal", "limit"),
    [
        (Reason.PUNT_ODD, Reason.DROP_ODD_BUDGET, 200),
        (Reason.PUNT_NEXTHOP, Reason.DROP_NEXTHOP_BUDGET, 2000),
    ],
)
def test_budgets_of_a_cpu_alone(punt: Reason, refusal: Reason, limit: int) -> None:
    budgets = Budgets(KERNEL)
    assert [budgets.charge(punt, 7) for _ in range(limit + 1)] == [punt] * limit + [refusal]


def test_first_packets_and_takeovers_share_what_a_cpu_has() -> None:
    budgets = Budgets({Region.FIRST: 1})
    assert budgets.charge(Reason.PUNT_FIRST, 7, 1) is Reason.PUNT_FIRST
    assert budgets.charge(Reason.PUNT_CONTENDED, 7, 2) is Reason.DROP_FIRST_BUDGET


def test_every_punt_costs_something_but_the_answer_whose_flow_counts() -> None:
    assert set(CHARGES) == PUNTS - {Reason.PUNT_ANSWER} | {Reason.PUNT_ODD}
    assert SHARES.items() < KERNEL.items()


@pytest.mark.parametrize(
    ("host", "bucket"),
    [
        ("0.0.0.0", 0),
        ("198.51.100.7", (0xC6336407 ^ 0xC633) & 0x3FFF),
        ("2001:db8::7", ((0x20010DB8 ^ 7) ^ (0x2001)) & 0x3FFF),
        ("2001:db8:1:2:3:4:5:6", 0x20060DB8 >> 16 ^ 0x0DB8),
    ],
)
def test_client_buckets(host: str, bucket: int) -> None:
    assert client_bucket(compact(host)) == bucket


@pytest.mark.parametrize(
    ("endpoint", "bucket"),
    [
        (("10.2.0.2", 5000), ((0x0A020002 ^ 5000) ^ 0x0A02) & 0x3FF),
        (("fd00:2::a02:2", 5000), ((0x0A020002 ^ 5000) ^ 0x0A02) & 0x3FF),
    ],
)
def test_endpoint_buckets(endpoint: tuple[str, int], bucket: int) -> None:
    assert endpoint_bucket(endpoint) == bucket


@given(st.integers(0, 2**24 - 1))
def test_token_buckets_are_the_first_two_bytes_of_the_tag(nonce: int) -> None:
    text = token(nonce=nonce)
    raw = base64.b64decode(text)
    assert token_bucket(text) == int.from_bytes(raw[1:7], "little") & 0xFFFF
