import pytest

from relayctl.packet.stamp_clock import DISTRUST_NS, StampClock

HOUR = 3_600_000_000_000
WALL, NOW = 1_700_000_000_000_000_000, 5_000_000_000
MS = 1_000_000


def test_a_stamp_is_turned_into_monotonic_time() -> None:
    clock = StampClock(WALL, NOW)
    clock.look(WALL + 20 * MS, NOW + 20 * MS)
    assert clock.monotonic(WALL + 5 * MS) == NOW + 5 * MS


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_what_was_stamped_before_a_step_came_just_now(step: int) -> None:
    clock = StampClock(WALL, NOW)
    clock.look(WALL + step + MS, NOW + MS)
    assert clock.monotonic(WALL) == NOW + MS


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_stamps_are_trusted_again_a_while_after_a_step(step: int) -> None:
    clock = StampClock(WALL, NOW)
    clock.look(WALL + step, NOW)
    clock.look(WALL + step + DISTRUST_NS, NOW + DISTRUST_NS)
    assert clock.monotonic(WALL + step + 7 * MS) == NOW + 7 * MS


def test_a_slewed_clock_is_no_step() -> None:
    clock = StampClock(WALL, NOW)
    clock.look(WALL + 60 * MS, NOW)
    clock.look(WALL + 120 * MS, NOW)
    assert clock.monotonic(WALL + 100 * MS) == NOW - 20 * MS
