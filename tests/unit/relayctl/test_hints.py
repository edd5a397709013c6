from relayctl import hints
from relayctl.flow import FlowKey
from relayctl.hints import PER_SECOND, Hints

SECOND = 1_000_000_000
KEYS = [FlowKey(("198.51.100.7", port), 1) for port in (40000, 40001)]


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
