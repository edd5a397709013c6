"""Packets with arrival times become samples with theirs; nothing is made up."""

import numpy as np
import pytest

from tests.audio.listening import Arrival, Heard, listen, through_buffer
from tests.audio.score import FIRST_TIMESTAMP, encode
from tests.lab import ear, speech
from tests.lab.speech import RATE

FRAME = 960


@pytest.fixture(scope="module")
def arrivals() -> list[Arrival]:
    """Six seconds of speech, each packet 100 ms after it was sent."""
    notes = encode(speech.spoken(6))
    return [Arrival(note.at + 0.1, *note[1:4]) for note in notes]


def test_speech_comes_back_where_it_was(arrivals: list[Arrival]) -> None:
    heard = listen(arrivals, FIRST_TIMESTAMP)
    found = ear.correlate(speech.spoken(6), heard.samples, RATE)
    assert found.median > 0.9
    assert found.lag_ms == pytest.approx(6.5, abs=0.2)
    assert heard.came.all()
    assert heard.at[0] == pytest.approx(0.1)
    assert heard.at[FRAME + 480] == pytest.approx(0.1 + 0.02 + 0.01)


def test_order_and_doubles_make_no_difference(arrivals: list[Arrival]) -> None:
    again = arrivals[5]._replace(at=9.0)
    mixed = [*arrivals[10:20], *arrivals[:10], *arrivals[20:], again]
    straight, crooked = listen(arrivals, FIRST_TIMESTAMP), listen(mixed, FIRST_TIMESTAMP)
    assert (straight.samples == crooked.samples).all()
    assert (straight.at == crooked.at).all()  # the first copy is the one that is heard


def test_what_did_not_come_is_silence(arrivals: list[Arrival]) -> None:
    heard = listen(arrivals[:50] + arrivals[53:], FIRST_TIMESTAMP)
    gap = slice(50 * FRAME, 53 * FRAME)
    assert not heard.came[gap].any()
    assert not heard.samples[gap].any()
    assert heard.came.sum() == len(heard.samples) - 3 * FRAME


def test_without_a_first_timestamp_the_first_arrival_is_it(arrivals: list[Arrival]) -> None:
    assert len(listen(arrivals[10:]).samples) == (len(arrivals) - 10) * FRAME
    assert len(listen([]).samples) == 0


def test_a_timestamp_from_elsewhere_is_refused(arrivals: list[Arrival]) -> None:
    foreign = arrivals[0]._replace(timestamp=FIRST_TIMESTAMP - 1)
    with pytest.raises(ValueError, match="outside of a call"):
        listen([foreign], FIRST_TIMESTAMP)


def test_a_buffer_of_known_depth_delays_by_it_and_loses_what_is_later() -> None:
    size = 10 * FRAME
    at = np.arange(size) / RATE + 5.0
    at[3 * FRAME : 4 * FRAME] += 0.03  # one frame is 30 ms late,
    at[6 * FRAME : 7 * FRAME] = np.nan  # and one never came
    heard = Heard(np.ones(size), at)
    for depth_s, lost in ((0.04, [6]), (0.02, [3, 6])):
        played = through_buffer(heard, depth_s)
        start = round(depth_s * RATE)
        assert not played[:start].any()
        frames = played[start:].reshape(-1, FRAME)
        assert [number for number, frame in enumerate(frames) if not frame.any()] == lost
        assert all(frame.all() for number, frame in enumerate(frames) if number not in lost)


def test_a_buffer_that_nothing_reached_plays_nothing() -> None:
    assert len(through_buffer(Heard(np.zeros(960), np.full(960, np.nan)), 0.1)) == 0
