import math
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.transceiver.audio.spoken import packet
from transceiver.audio.order import (
    HELD,
    MAX_WAIT_S,
    RESYNC_AFTER,
    WAIT_S,
    Order,
    Ordered,
)

FRAME_S = 0.02


def numbers(out: Iterable[Ordered]) -> list[int]:
    return [turn.packet.sequence for turn in out]


def ordered(*arrived: int) -> Order:
    """An order that has had these, 20 ms apart by their numbers."""
    order = Order()
    for n in arrived:
        order.add(packet(n), n * FRAME_S)
    return order


def test_what_continues_goes_through_at_once_and_across_the_wrap() -> None:
    order = Order()
    given_out = [numbers(order.add(packet(n), n * FRAME_S)) for n in range(65534, 65539)]
    assert given_out == [[65534], [65535], [0], [1], [2]]
    assert order.deadline == math.inf


def test_a_missing_packet_that_comes_in_time_is_given_out_in_its_place() -> None:
    order = ordered(1)
    assert order.add(packet(3), 1.0) == []
    assert order.deadline == pytest.approx(1.0 + WAIT_S)
    assert order.timer(1.0 + WAIT_S - 0.001) == []
    out = order.add(packet(2), 1.0 + WAIT_S - 0.001)
    assert [(turn.packet.sequence, turn.missing) for turn in out] == [(2, 0), (3, 0)]
    assert order.deadline == math.inf
    assert order.late == 0


def test_reordered_by_three_is_delivered_in_order_once() -> None:
    order = ordered(1)
    out: list[int] = []
    for n in (4, 3, 5, 2, 6):
        out += numbers(order.add(packet(n), 1.0))
    assert out == [2, 3, 4, 5, 6]


def test_gaps_close_across_the_wrap() -> None:
    order = ordered(65533)
    assert order.add(packet(65536), 1.0) == []
    assert order.add(packet(65535), 1.0) == []
    assert numbers(order.add(packet(65534), 1.0)) == [65534, 65535, 0]
    order = ordered(65533)
    order.add(packet(65536), 1.0)
    order.add(packet(65537), 1.0)
    out = order.timer(order.deadline)
    assert [(turn.packet.sequence, turn.missing) for turn in out] == [(0, 2), (1, 0)]
    assert numbers(order.add(packet(65538), 1.1)) == [2]


def test_a_gap_is_given_up_at_its_deadline() -> None:
    order = ordered(1)
    order.add(packet(4), 1.0)
    out = order.timer(order.deadline)
    assert [(turn.packet.sequence, turn.missing) for turn in out] == [(4, 2)]
    assert order.deadline == math.inf


def test_a_due_gap_is_given_up_by_the_next_packet_too() -> None:
    order = ordered(1)
    order.add(packet(3), 1.0)
    assert numbers(order.add(packet(4), 1.0 + WAIT_S)) == [3, 4]


def test_each_gap_waits_from_its_own_opening() -> None:
    order = ordered(1)
    order.add(packet(3), 1.000)
    order.add(packet(5), 1.015)
    assert numbers(order.timer(1.000 + WAIT_S)) == [3]
    assert order.timer(1.034) == []
    assert order.deadline == pytest.approx(1.015 + WAIT_S, abs=0.001)
    assert numbers(order.timer(order.deadline)) == [5]


def test_a_packet_behind_its_time_is_late_and_a_second_copy_a_duplicate() -> None:
    order = ordered(1)
    order.add(packet(3), 1.0)
    order.timer(order.deadline)
    assert order.add(packet(2), 1.1) == []
    assert (order.late, order.duplicates) == (1, 0)
    assert order.add(packet(2), 1.1) == []
    assert order.add(packet(3), 1.1) == []
    assert (order.late, order.duplicates) == (1, 2)


def test_a_copy_of_a_packet_that_waits_is_a_duplicate() -> None:
    order = ordered(1)
    order.add(packet(3), 1.0)
    assert order.add(packet(3), 1.0) == []
    assert order.duplicates == 1
    assert numbers(order.timer(order.deadline)) == [3]


def test_a_packet_from_before_the_first_is_late() -> None:
    order = ordered(10)
    assert order.add(packet(9), 0.2) == []
    assert (order.late, order.duplicates) == (1, 0)


def test_the_wait_follows_lateness_that_it_can_catch() -> None:
    order = ordered(1)
    order.add(packet(3), 1.0)
    order.timer(order.deadline)
    order.add(packet(2), 1.040)
    assert 0.040 < order.wait <= MAX_WAIT_S
    order.add(packet(5), 2.0)
    assert numbers(order.add(packet(4), 2.040)) == [4, 5]


def test_the_wait_grows_before_anything_is_late() -> None:
    order = ordered(1)
    order.add(packet(3), 1.0)
    order.add(packet(2), 1.018)
    assert order.wait == pytest.approx(0.0225)
    order.add(packet(5), 2.0)
    order.add(packet(7), 2.0)
    order.add(packet(6), 2.020)
    assert order.wait == pytest.approx(0.025)


def test_the_wait_has_an_end() -> None:
    order = ordered(1)
    order.add(packet(3), 1.0)
    order.timer(order.deadline)
    order.add(packet(2), 1.0 + MAX_WAIT_S - 0.001)
    assert order.wait == MAX_WAIT_S
    order.add(packet(5), 2.0)
    order.timer(order.deadline)
    shrunk = order.wait
    order.add(packet(4), 2.5)
    assert order.wait == shrunk  # half a second late: waiting would not have helped


def test_losses_bring_the_wait_back() -> None:
    order = ordered(1)
    order.add(packet(3), 1.0)
    order.timer(order.deadline)
    order.add(packet(2), 1.050)
    for n in range(5, 205, 2):
        order.add(packet(n), n * 1.0)
        order.timer(order.deadline)
    assert order.wait == pytest.approx(WAIT_S, abs=0.001)


def test_a_full_hold_gives_the_gap_up() -> None:
    order = ordered(1)
    out: list[int] = []
    for n in range(3, 3 + HELD):
        out += numbers(order.add(packet(n), 1.0))
    assert out == []
    assert numbers(order.add(packet(3 + HELD), 1.0)) == list(range(3, 4 + HELD))
    assert order.overflows == 1


def test_a_long_outage_is_loss() -> None:
    order = ordered(1)
    order.add(packet(2001), 40.0)
    assert order.timer(order.deadline) == [Ordered(packet(2001), 1999)]


def test_a_sender_that_restarts_is_followed_from_the_fifth_packet_and_nothing_is_lost() -> None:
    order = ordered(1, 2)
    for n in range(RESYNC_AFTER - 1):
        assert order.add(packet(30000 + n), 1.0) == []
    out = order.add(packet(30000 + RESYNC_AFTER - 1), 1.0)
    assert numbers(out) == list(range(30000, 30000 + RESYNC_AFTER))
    assert [turn.fresh for turn in out] == [True] + [False] * (RESYNC_AFTER - 1)
    assert order.resyncs == 1
    assert numbers(order.add(packet(30005), 1.0)) == [30005]


def test_foreign_packets_between_our_own_are_dropped() -> None:
    order = ordered(1)
    for n in range(2, 20):
        order.add(packet(30000 + n), 1.0)
        assert numbers(order.add(packet(n), 1.0)) == [n]
    assert (order.resyncs, order.foreign) == (0, 18)


def test_foreign_packets_without_a_sequence_are_dropped() -> None:
    order = ordered(1)
    for n in range(20):
        assert order.add(packet(10000 + n * 1777 % 50000), 1.0) == []
    assert order.resyncs == 0


def test_a_restart_just_behind_in_number_is_told_by_its_time() -> None:
    order = ordered(*range(1000, 1050))
    out: list[int] = []
    for n in range(RESYNC_AFTER):
        out += numbers(order.add(packet(1000 + n, 0xDEAD0000 + n * 960), 30.0))
    assert out == [1000, 1001, 1002, 1003, 1004]


def test_late_packets_in_a_row_are_no_restart() -> None:
    order = ordered(*range(1000, 1050))
    for n in range(1000, 1040):
        assert order.add(packet(n), 30.0) == []
    assert (order.resyncs, order.duplicates) == (0, 40)


def test_another_source_takes_over_at_once_after_what_waits() -> None:
    order = ordered(1)
    order.add(packet(3), 1.0)
    out = order.add(packet(77, ssrc=8), 1.01)
    assert out == [Ordered(packet(3), 1), Ordered(packet(77, ssrc=8), fresh=True)]
    assert order.deadline == math.inf


def test_gaps_of_the_source_before_are_forgotten() -> None:
    order = ordered(1)
    order.add(packet(3), 1.0)
    order.timer(order.deadline)
    for n in (1, 2, 3):
        order.add(packet(n, ssrc=8), 1.0)
    order.add(packet(2, ssrc=8), 1.0)
    assert (order.late, order.duplicates) == (0, 1)


def test_stragglers_of_the_source_before_do_not_bring_it_back() -> None:
    order = ordered(1, 2)
    order.add(packet(77, ssrc=8), 1.0)
    assert order.add(packet(3), 1.0) == []
    assert numbers(order.add(packet(78, ssrc=8), 1.0)) == [78]
    assert order.foreign == 1


def test_the_source_before_comes_back_with_five_in_a_row() -> None:
    order = ordered(1, 2)
    order.add(packet(77, ssrc=8), 1.0)
    out: list[int] = []
    for n in range(3, 3 + RESYNC_AFTER):
        out += numbers(order.add(packet(n), 1.0))
    assert out == [3, 4, 5, 6, 7]


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[float, int]]:
    """(seconds, number): some lost, some twice, each up to 100 ms under way."""
    first = draw(st.integers(0, 0xFFFF))
    times = []
    for n in range(draw(st.integers(1, HELD - 4))):
        for _ in range(draw(st.sampled_from((1, 1, 1, 1, 1, 0, 0, 2)))):
            delay = draw(st.sampled_from((0, 0, 0, 1, 5, 21, 30, 45, 59, 61, 100)))
            times.append((n * FRAME_S + delay / 1000, first + n))
    return sorted(times)


@settings(deadline=None)
@given(arrivals())
def test_whatever_comes_leaves_once_in_order_and_soon(times: list[tuple[float, int]]) -> None:
    order = Order()
    came: dict[int, float] = {}
    left: list[tuple[int, int]] = []

    def note(out: list[Ordered], now: float) -> None:
        for turn in out:
            number = turn.packet.timestamp // 960
            assert now - came[number] <= MAX_WAIT_S + 1e-9
            left.append((number, turn.missing))

    for now, number in times:
        while order.deadline <= now:
            due = order.deadline
            note(order.timer(due), due)
        came.setdefault(number, now)
        note(order.add(packet(number), now), now)
    note(order.timer(math.inf), 0)
    for (before, _), (number, missing) in pairwise(left):
        assert number == before + 1 + missing
    assert len(left) + order.late + order.duplicates == len(times)
    assert len({number for number, _ in left}) == len(left)
    assert (order.foreign, order.resyncs, order.overflows) == (0, 0, 0)
