"""Repairs are judged against the same talk without loss, and only where there was speech."""

import numpy as np
import pytest

from tests.audio import compressed, repair, score
from tests.audio.repair import came_whole, error, spoken_frames
from tests.clients.opus_source import FRAME
from tests.lab import speech
from tests.lab.ear import Row

LOST = list(range(40, 480, 17))


@pytest.fixture(scope="module")
def notes() -> list[score.Note]:
    return score.encode(speech.spoken(10), fec=True)


@pytest.fixture(scope="module")
def lossless(notes: list[score.Note]) -> Row:
    return compressed.travel(notes, rate=48000).samples()


def test_the_scale() -> None:
    talk = np.sin(np.arange(10 * FRAME) / 7.0)
    assert error(talk, talk, [3, 4], 0) == 0
    assert error(talk, np.zeros(len(talk)), [3, 4], 0) == pytest.approx(1)
    assert error(talk, -talk, [3, 4], 0) == pytest.approx(4)
    assert error(talk, talk[: 3 * FRAME], [3], 0) == pytest.approx(1)
    assert error(talk, talk, [], 0) is None


def test_only_frames_with_speech_count(lossless: Row) -> None:
    spoken = spoken_frames(lossless, range(500), 0)
    assert 200 < len(spoken) < 480
    assert spoken_frames(np.zeros(500 * FRAME), range(500), 0) == []


def test_copies_repair_well_and_silence_or_another_talk_do_not(
    notes: list[score.Note], lossless: Row
) -> None:
    repaired = compressed.travel(score.without(notes, LOST), rate=48000).samples()
    copied = [n for n in LOST if score.carries_fec(notes[n + 1].payload)]
    copied = spoken_frames(lossless, copied, 0)
    assert len(copied) >= 10
    good = error(lossless, repaired, copied, 0)
    assert good is not None
    assert good <= 0.4

    silence, shifted = repaired.copy(), np.roll(repaired, round(0.02 * speech.RATE))
    for number in copied:
        silence[number * FRAME : (number + 1) * FRAME] = 0
    others = compressed.travel(score.encode(speech.spoken(10, speech.OTHER)), rate=48000).samples()
    for bad in (silence, shifted, others):
        wrong = error(lossless, bad, copied, 0)
        assert wrong is not None
        assert wrong > 0.8


def test_whole_is_every_sample_of_the_shifted_frame() -> None:
    came = np.ones(10 * FRAME, bool)
    assert came_whole(came, 8, repair.ECHOED)
    assert not came_whole(came, 9, repair.ECHOED)
    came[5 * FRAME + 3] = False
    assert came_whole(came, 5, repair.ECHOED)
    assert not came_whole(came, 4, repair.ECHOED)
