"""Whoever is planned is woken once, in time, and costs nothing before."""

import math
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from transceiver.wheel import TURN_S, Wheel

NOW = 1000.0


def test_wakes_once_not_early_and_a_turn_late_at_most() -> None:
    wheel: Wheel[str] = Wheel()
    wheel.turn(NOW)
    wheel.plan("a", NOW + 0.5)
    assert wheel.turn(NOW + 0.499) == []
    assert wheel.turn(NOW + 0.5 + TURN_S) == ["a"]
    assert wheel.turn(NOW + 9) == []
    assert len(wheel) == 0


def test_a_new_plan_replaces_the_old_one_both_ways() -> None:
    wheel: Wheel[str] = Wheel()
    wheel.plan("sooner", NOW + 5)
    wheel.plan("later", NOW + 1)
    wheel.plan("sooner", NOW + 1)
    wheel.plan("later", NOW + 5)
    assert wheel.turn(NOW + 2) == ["sooner"]
    assert wheel.turn(NOW + 6) == ["later"]


def test_at_once_is_the_next_turn() -> None:
    wheel: Wheel[str] = Wheel()
    assert wheel.turn(NOW) == []
    wheel.plan("a", -math.inf)
    assert wheel.turn(NOW + TURN_S) == ["a"]


def test_what_is_overdue_comes_at_the_next_turn_and_not_in_this_one() -> None:
    wheel: Wheel[str] = Wheel()
    assert wheel.turn(NOW) == []
    wheel.plan("a", NOW - 3)
    assert wheel.turn(NOW) == []
    assert wheel.turn(NOW + TURN_S) == ["a"]


def test_never_and_cancelled_leave_nothing() -> None:
    wheel: Wheel[str] = Wheel()
    wheel.plan("never", math.inf)
    wheel.plan("a", NOW)
    wheel.plan("a", math.inf)
    wheel.plan("b", NOW)
    wheel.cancel("b")
    wheel.cancel("b")
    assert len(wheel) == 0
    assert wheel.turn(NOW + 10) == []
    assert not wheel._slots


def test_after_a_long_sleep_all_come_in_order() -> None:
    wheel: Wheel[int] = Wheel()
    wheel.turn(NOW)
    for n in (3, 1, 2):
        wheel.plan(n, NOW + n * 100)
    assert wheel.turn(NOW + 1e6) == [1, 2, 3]


class Slots(dict[int, dict[str, None]]):
    """Counts what is taken out, and may not be searched."""

    taken = 0

    def pop(self, *key: Any) -> Any:
        self.taken += 1
        return super().pop(*key)

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("searched")

    items = keys = values = __iter__  # type: ignore[assignment]


def test_a_turn_costs_what_is_due_however_many_wait() -> None:
    wheel: Wheel[str] = Wheel()
    wheel.turn(NOW)
    for n in range(10_000):
        wheel.plan(f"call {n}", NOW + 5 + n * TURN_S)
    slots = wheel._slots = Slots(wheel._slots)
    for turn in range(1, 101):
        assert wheel.turn(NOW + turn * TURN_S) == []
    assert slots.taken == 0
    assert len(wheel.turn(NOW + 5 + 10.5 * TURN_S)) == slots.taken == 11


def test_says_when_to_turn_it() -> None:
    wheel: Wheel[str] = Wheel()
    assert wheel.next == math.inf
    wheel.plan("late", NOW + 5)
    wheel.plan("soon", NOW + 1)
    assert NOW + 1 <= wheel.next <= NOW + 1 + TURN_S
    wheel.turn(NOW + 2)
    assert NOW + 5 <= wheel.next <= NOW + 5 + TURN_S
    wheel.cancel("late")
    wheel.turn(NOW + 6)
    assert wheel.next == math.inf


def test_who_changes_its_mind_for_ever_is_kept_once() -> None:
    wheel: Wheel[str] = Wheel()
    for n in range(10_000):
        wheel.plan("a", NOW + n % 100 * TURN_S)
    assert len(wheel) == 1
    assert len(wheel._slots) == len(wheel._numbers) == 100


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 3), st.floats(0, 0.3)), max_size=40))
def test_agrees_with_a_sorted_list(steps: list[tuple[int, float, float]]) -> None:
    wheel: Wheel[int] = Wheel()
    planned: dict[int, float] = {}
    now = NOW
    wheel.turn(now)
    for key, after, pause in steps:
        wheel.plan(key, now + after)
        planned[key] = now + after
        now += pause
        woken = wheel.turn(now)
        assert all(planned.pop(key) <= now for key in woken)
        assert all(when > now - 2 * TURN_S for when in planned.values())
