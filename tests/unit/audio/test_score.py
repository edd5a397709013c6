"""Scores: what a client sends, and what the network is said to do to it."""

import pytest

from tests.audio.score import (
    FIRST_SEQUENCE,
    FIRST_TIMESTAMP,
    Note,
    carries_fec,
    doubled,
    drifting,
    encode,
    from_json,
    in_order,
    late,
    paused,
    to_json,
    without,
)
from tests.lab import speech

SCORE = [Note(n / 50, n, 960 * n, bytes([n])) for n in range(10)]


@pytest.mark.parametrize(("frame_ms", "packets"), [(10, 100), (20, 50), (40, 25), (60, 16)])
def test_numbers_times_and_moments_of_packets(frame_ms: int, packets: int) -> None:
    notes = encode(speech.spoken(1), frame_ms=frame_ms)
    assert len(notes) == packets
    last = packets - 1
    assert notes[last].at == pytest.approx(last * frame_ms / 1000)
    assert notes[last].sequence == (FIRST_SEQUENCE + last) % 0x10000
    assert notes[last].timestamp == (FIRST_TIMESTAMP + last * 48 * frame_ms) % 0x100000000
    assert [note.marker for note in notes] == [True] + [False] * last


def test_numbers_and_timestamps_wrap_within_a_second() -> None:
    notes = encode(speech.spoken(1))
    assert notes[-1].sequence < notes[0].sequence
    assert notes[-1].timestamp < notes[0].timestamp


def test_copies_are_in_packets_of_speech_coded_with_fec() -> None:
    talk = speech.spoken(10)
    share = sum(carries_fec(note.payload) for note in encode(talk, fec=True)) / 500
    assert 0.6 < share < 1
    assert not any(carries_fec(note.payload) for note in encode(talk))
    assert not carries_fec(b"\xfc\xff")  # CELT
    assert not carries_fec(b"\x78")


def test_lost() -> None:
    assert [note.sequence for note in without(SCORE, {0, 4})] == [1, 2, 3, 5, 6, 7, 8, 9]


def test_late_ones_are_overtaken() -> None:
    assert [note.sequence for note in late(SCORE, {2}, 0.05)] == [0, 1, 3, 4, 2, 5, 6, 7, 8, 9]


def test_doubled_at_once_and_later() -> None:
    assert [note.sequence for note in doubled(SCORE[:3], {1})] == [0, 1, 1, 2]
    assert [note.sequence for note in doubled(SCORE[:3], {0}, 0.03)] == [0, 1, 0, 2]


def test_a_pause_skips_time_and_no_numbers() -> None:
    notes = paused(SCORE, 0.06, 0.12)
    assert [note.sequence for note in notes] == [0, 1, 2, 3, 4, 5, 6]
    assert [note.timestamp // 960 for note in notes] == [0, 1, 2, 6, 7, 8, 9]
    assert [note.marker for note in notes] == [True, False, False, True, False, False, False]


def test_a_fast_clock_sends_sooner() -> None:
    fast, slow = drifting(SCORE, 200), drifting(SCORE, -200)
    assert fast[9].at == pytest.approx(0.18 * (1 - 200e-6), rel=1e-6)
    assert slow[9].at == pytest.approx(0.18 * (1 + 200e-6), rel=1e-6)
    assert fast[9].timestamp == SCORE[9].timestamp


def test_in_order_each_packet_is_once() -> None:
    wrapping = [note._replace(sequence=(0xFFFC + note.sequence) & 0xFFFF) for note in SCORE]
    crooked = doubled(late(wrapping, {0, 3}, 0.07), {5})
    assert [note.sequence for note in crooked][:2] == [0xFFFD, 0xFFFE]
    assert [note.sequence for note in in_order(crooked)] == [note.sequence for note in wrapping]


def test_a_score_reaches_another_process_as_it_is() -> None:
    notes = encode(speech.spoken(1))
    assert from_json(to_json(notes)) == notes
    with pytest.raises(ValueError, match="unpack"):
        from_json("[[1, 2]]")
