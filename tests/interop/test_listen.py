"""The ear knows the meant words from others, from a tone and from silence."""

import numpy as np

from tests.interop.listen import fault_of_speech, fault_of_tone, levels, loud_share
from tests.interop.stage import words
from tests.lab import speech

SILENCE = np.zeros(speech.RATE, np.float32)
TONE = (0.3 * np.sin(2 * np.pi * 440 * np.arange(2 * speech.RATE) / speech.RATE)).astype(np.float32)


def test_a_stretch_of_the_words_is_known() -> None:
    said = words()[3 * speech.RATE : 6 * speech.RATE]
    assert fault_of_speech(np.concatenate([SILENCE, 0.5 * said, SILENCE]), words()) is None


def test_other_words_are_not() -> None:
    others = np.concatenate([SILENCE, speech.spoken(3.0)])
    assert "likeness" in str(fault_of_speech(others, words()))


def test_silence_is_no_speech_and_no_tone() -> None:
    assert fault_of_speech(SILENCE, words()) == "only 0 ms of sound"
    assert fault_of_tone(SILENCE) == "only 0 ms of sound"


def test_a_tone_is_known_from_speech() -> None:
    assert fault_of_tone(np.concatenate([SILENCE, TONE])) is None
    assert fault_of_tone(np.concatenate([SILENCE, words()[: len(TONE)]])) is not None


def test_what_is_loud_when() -> None:
    heard = levels(np.concatenate([SILENCE, TONE]), begun=10.0)
    assert loud_share(heard, 10.0, 11.0) == 0.0
    assert loud_share(heard, 11.1, 12.0) == 1.0
    assert loud_share(heard, 20.0, 21.0) is None
