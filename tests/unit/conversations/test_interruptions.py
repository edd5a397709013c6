"""A reply of 50 packets from 100.0 on, into which somebody speaks at 100.5."""

from typing import Any

import pytest

from tests.conversations import interruptions
from tests.conversations.caller import Came, Told
from tests.conversations.interruptions import Interruption, Word
from tests.conversations.mouth import RATE, phrase
from tests.conversations.position import errors
from transceiver.audio.opus import Encoder

BEGAN, SPOKE = 100.0, 100.5
SIZE = RATE // 50


def came(loud: int, count: int = 150) -> list[Came]:
    """`loud` packets of speech, then silence; the first has the marker."""
    encoder = Encoder(RATE)
    pcm = (phrase(0, loud / 50) * 20000).astype("<i2")
    return [
        Came(
            BEGAN + n * 0.02,
            n * 960,
            n == 0,
            encoder.encode(
                pcm[n * SIZE : (n + 1) * SIZE].tobytes() if n < loud else bytes(2 * SIZE)
            ),
        )
        for n in range(count)
    ]


def told(kind: str, at: float, **fields: Any) -> Told:
    return Told(at, {"type": kind, **fields})


CUT = [
    told("input_audio_buffer.speech_started", 100.59),
    told("output_audio_buffer.cleared", 100.59),
    told("conversation.item.truncated", 100.59, audio_end_ms=550),
]


def read(packets: list[Came], events: list[Told], way_s: float = 0.0) -> Interruption:
    (found,) = interruptions.read(packets, events, [Word(SPOKE, 1)], way_s)
    return found


def test_from_the_first_word_to_the_last_sound() -> None:
    found = read(came(31), CUT)  # the last at 100.60, and what the coder drags on
    assert found.took_ms == pytest.approx(110, abs=21)
    assert found.flush_ms == pytest.approx(20, abs=21)


def test_a_reply_that_sounds_on_is_late() -> None:
    found = read(came(41), CUT)
    assert found.took_ms is not None
    assert found.flush_ms is not None
    assert found.took_ms >= 300
    assert found.flush_ms >= 200


def test_nobody_noticed() -> None:
    found = read(came(90), [])
    assert found.decided_at is None
    assert found.took_ms is None or found.took_ms > 1000


def test_a_word_in_a_pause_of_the_reply_cuts_nothing() -> None:
    found = read(came(20), CUT)
    assert not found.sounded
    assert found.took_ms is None
    assert found.flush_ms is None


def test_what_an_ear_had_played() -> None:
    found = read(came(31), CUT)
    assert found.played_ms(0.04) == pytest.approx(550)
    assert errors([found], 0.04) == pytest.approx([0], abs=1e-6)
    assert errors([found], 0.14) == pytest.approx([100])


def test_a_slot_that_was_skipped_is_not_played() -> None:
    packets = came(31)
    del packets[10:15]  # nothing was lost: their places in time were left out
    assert read(packets, CUT).played_ms(0.04) == pytest.approx(450)


def test_the_decision_is_as_much_earlier_as_the_way_is_long() -> None:
    found = read(came(31), CUT, way_s=0.03)
    assert found.played_ms(0.04) == pytest.approx(520)


def test_a_reply_that_was_cleared_before_it_was_heard_has_no_position() -> None:
    assert read(came(31), CUT[:2]).told_ms == 0
    assert read(came(31), CUT[:1]).told_ms is None
    assert errors([read(came(31), CUT[:1])], 0.04) == []
