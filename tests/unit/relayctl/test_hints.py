from hypothesis import given
from hypothesis import strategies as st

from relayctl import hints
from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.hints import PER_SECOND, HintIndex, Hints, difference

SECOND = 1_000_000_000
KEYS = [FlowKey(("198.51.100.7", port), 1) for port in (40000, 40001)]


def flow(ssrc: int, born: int = 0, flags: int = CONFIRMED) -> Flow:
    return Flow(("10.2.0.2", 5000), 7, 5100, ssrc=ssrc, born=born, flags=flags)


def test_update_and_find() -> None:
    known = Hints()
    known.update({1: KEYS[0], 2: KEYS[1]})
    known.update({2: KEYS[0]}, removed=[1, 99])
    assert (known.find(1), known.find(2), len(known)) == (None, KEYS[0], 1)


def test_a_full_table_still_follows_what_it_knows() -> None:
    known = Hints()
    known.update(dict.fromkeys(range(hints.CAPACITY + 5), KEYS[0]))
    assert len(known) == hints.CAPACITY
    known.update({0: KEYS[1]})
    assert known.find(0) == KEYS[1]


def test_budget_is_for_each_ssrc_and_second() -> None:
    known = Hints()
    assert [known.take(1, 0) for _ in range(PER_SECOND + 1)] == [True] * PER_SECOND + [False]
    assert known.take(2, 0)
    assert not known.take(1, SECOND - 1)
    assert known.take(1, SECOND)


def test_index_takes_confirmed_flows_with_an_ssrc_and_the_newest_wins() -> None:
    index = HintIndex()
    index.see(KEYS[0], flow(5, born=20))
    index.see(KEYS[1], flow(5, born=10))
    index.see(KEYS[1], flow(6, flags=0))
    index.see(KEYS[1], flow(0))
    assert index.result() == {5: KEYS[0]}


TABLES = st.dictionaries(st.integers(0, 9), st.sampled_from(KEYS))


@given(TABLES, TABLES)
def test_a_difference_leads_from_old_to_new(
    old: dict[int, FlowKey], new: dict[int, FlowKey]
) -> None:
    known = Hints()
    known.update(old)
    added, removed = difference(old, new)
    known.update(added, removed)
    assert {ssrc: known.find(ssrc) for ssrc in range(10) if known.find(ssrc)} == new
