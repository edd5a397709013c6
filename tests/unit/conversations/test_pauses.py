from collections.abc import Iterable

import numpy as np
import pytest

from tests.conversations.clips import Clip, Span, clips
from tests.conversations.pauses import SILERO_SETTINGS, Heard, Packet, answer, converse, hear
from transceiver.turns.detector import Started, Stopped
from transceiver.turns.settings import Settings
from transceiver.turns.vad import Stock, make

CLIP = Clip("of two phrases", np.zeros(16_000 * 3, np.int16), (Span(0.2, 0.5), Span(1.5, 2.0)))


def packets(told: Iterable[tuple[int, Started | Stopped]], suspects: range) -> list[Packet]:
    """What is told in which packet of 20 ms."""
    turns = dict(told)
    return [
        Packet([turns[number]] if number in turns else [], number in suspects)
        for number in range(1, 151)
    ]


def test_an_answer_comes_after_the_time_to_think() -> None:
    heard = answer(CLIP, packets([(50, Stopped(0, 0))], range(0)), 0.1)
    assert heard.ends == [pytest.approx(1.0)]
    assert heard.answers == [pytest.approx(1.107)]
    assert heard.early() == 1
    assert heard.into_speech() == []


def test_an_answer_waits_while_speech_is_suspected() -> None:
    told = packets([(50, Stopped(0, 0))], range(55, 60))
    assert answer(CLIP, told, 0.1).answers == [pytest.approx(1.207)]
    assert answer(CLIP, told, 0.1, waits=False).answers == [pytest.approx(1.107)]


def test_an_answer_is_given_up_when_speech_resumes() -> None:
    told = packets([(50, Stopped(0, 0)), (77, Started(0))], range(76, 77))
    heard = answer(CLIP, told, 0.52)
    assert heard.answers == []
    assert heard.resumed == 1


@pytest.mark.parametrize(
    ("at", "counts"), [(1.507, False), (1.527, True), (1.9, True), (2.01, False)]
)
def test_sound_counts_from_the_packet_on_that_tells_of_speech(at: float, counts: bool) -> None:
    assert bool(Heard(CLIP, answers=[at]).into_speech()) is counts


def test_the_end_of_a_turn_is_late_by_what_was_waited_for() -> None:
    assert Heard(CLIP, ends=[1.0, 2.6]).end_of_turn_s() == pytest.approx(0.6)


def test_a_short_pause_is_no_end_and_a_long_one_is() -> None:
    vad, settings = make("silero"), Settings(silence_ms=500)
    short, long = clips()[0], clips()[-1]
    assert answer(short, hear(short, vad, settings), 0.3).early() == 0
    heard = answer(long, hear(long, vad, settings), 0.3)
    assert heard.early() == 1
    assert 0.5 < heard.end_of_turn_s() < 0.7


def test_patience_takes_no_pause_for_an_end() -> None:
    vad, clip = make("silero"), clips()[12]  # 1.06 s
    ends = [
        answer(clip, hear(clip, vad, Settings(silence_ms=silence)), 0.3).early()
        for silence in (500, 800, 1200)
    ]
    assert ends == [1, 1, 0]


def test_the_parrot_falls_for_a_long_pause_but_speaks_into_no_speech() -> None:
    clip = clips()[10]  # 0.93 s
    heard = converse(clip, Stock("silero", spare=1), SILERO_SETTINGS["server_vad_500"])
    assert heard.early() == 1
    assert heard.into_speech() == []
    assert len(heard.answers) == 1
    assert heard.answers[0] > clip.speech[-1].end
