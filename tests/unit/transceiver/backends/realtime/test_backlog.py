import math

import pytest

from transceiver.backends.realtime.backlog import BURST_S, MAX_EVENTS, Backlog
from transceiver.events import Event

PIECE = bytes(960)  # 20 ms
EVENT: Event = {"type": "input_audio_buffer.commit"}


def drained(backlog: Backlog, begin: float, end: float) -> list[float]:
    """When each entry could be taken, by a clock that jumps from one to the next."""
    at, times = begin, []
    while (delay := backlog.delay(at)) < math.inf and at + delay <= end:
        at += delay + 1e-9
        assert backlog.take(at) is not None
        times.append(at)
    return times


def test_what_comes_while_the_server_keeps_up_goes_at_once() -> None:
    backlog = Backlog()
    backlog.start(0.0)
    for n in range(1, 500):
        backlog.add_sound(PIECE)
        assert backlog.take(n * 0.02) == PIECE
        assert backlog.take(n * 0.02) is None
    assert backlog.delay(10.0) == math.inf


def test_a_pause_of_the_client_goes_at_once() -> None:
    backlog = Backlog()
    backlog.start(0.0)
    for n in range(1, 5):
        backlog.add_sound(bytes(48000))
        assert backlog.take(float(n)) is not None


def test_nothing_goes_while_there_is_no_server() -> None:
    backlog = Backlog()
    backlog.add_sound(PIECE)
    backlog.add_event(EVENT)
    assert (backlog.take(5.0), backlog.delay(5.0)) == (None, math.inf)
    backlog.start(6.0)
    backlog.stop()
    assert (backlog.take(9.0), backlog.delay(9.0)) == (None, math.inf)


def test_what_waited_is_caught_up_at_four_times_real_time_while_talk_goes_on() -> None:
    backlog = Backlog()
    for _ in range(490):
        backlog.add_sound(PIECE)
    backlog.start(100.0)
    now, taken = 100.0, 0
    while backlog.delay(now) < math.inf:
        backlog.add_sound(PIECE)
        while backlog.take(now) is not None:
            taken += 1
            assert taken * 0.02 <= 4 * (now - 100.0) + 1e-6
        now += 0.02
    assert now - 100.0 == pytest.approx(9.8 / 3, abs=0.1)
    assert backlog.dropped == 0


def test_of_sound_the_newest_ten_seconds_are_kept_and_of_events_all() -> None:
    backlog = Backlog()
    backlog.add_event(EVENT)
    for n in range(600):
        backlog.add_sound(bytes([n % 256]) * 960)
    assert backlog.dropped == 100
    backlog.start(0.0)
    assert backlog.take(1.0) is EVENT
    assert backlog.take(1.0) == bytes([100]) * 960
    assert len(drained(backlog, 1.0, 100.0)) == 499


def test_events_stay_between_the_sounds_they_are_about() -> None:
    backlog = Backlog()
    backlog.add_sound(PIECE)
    backlog.add_event(EVENT)
    backlog.add_sound(PIECE)
    backlog.start(0.0)
    assert [backlog.take(1.0) for _ in range(4)] == [PIECE, EVENT, PIECE, None]


def test_an_event_waits_for_the_sound_before_it() -> None:
    backlog = Backlog()
    backlog.add_sound(bytes(48000))
    backlog.add_event(EVENT)
    backlog.start(0.0)
    assert backlog.take(0.1) is None
    assert backlog.delay(0.1) == pytest.approx(0.15)
    assert [backlog.take(0.26), backlog.take(0.26)] == [bytes(48000), EVENT]


def test_too_many_events_are_refused_but_ours() -> None:
    backlog = Backlog()
    assert all(backlog.add_event(EVENT) for _ in range(MAX_EVENTS))
    assert not backlog.add_event(EVENT)
    assert backlog.add_event(EVENT, ours=True)
    backlog.start(0.0)
    backlog.take(0.0)
    backlog.take(0.0)
    assert backlog.add_event(EVENT)


def test_a_long_silence_allows_no_more_than_a_burst() -> None:
    backlog = Backlog()
    backlog.start(0.0)
    for _ in range(400):
        backlog.add_sound(PIECE)
    taken = 0
    while backlog.take(1000.0) is not None:
        taken += 1
    assert taken == round(BURST_S / 0.02)


def test_sound_that_could_not_be_sent_is_first_again() -> None:
    backlog = Backlog()
    backlog.start(0.0)
    backlog.add_sound(b"ab")
    backlog.add_sound(b"cd")
    first = backlog.take(1.0)
    assert isinstance(first, bytes)
    backlog.restore(first)
    assert [backlog.take(1.0), backlog.take(1.0)] == [b"ab", b"cd"]
