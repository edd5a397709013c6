"""The recorded passages are what their README says, and WAV files come back as written."""

import wave
from pathlib import Path

import numpy as np
import pytest

from tests.lab.speech import OTHER, RATE, SPOKEN, read, read_wav, spoken, write_wav


@pytest.mark.parametrize(("path", "seconds"), [(SPOKEN, 24.3), (OTHER, 9.9)])
def test_a_passage_has_its_length_and_is_speech(path: Path, seconds: float) -> None:
    samples = read(path)
    assert len(samples) / RATE == pytest.approx(seconds, abs=0.05)
    assert 0.03 < np.sqrt(np.mean(samples**2)) < 0.2
    assert np.abs(samples).max() < 1


def test_a_longer_call_hears_the_passage_again() -> None:
    once = read(SPOKEN)
    twice = spoken(30)
    assert len(twice) == 30 * RATE
    assert np.array_equal(twice[len(once) :], once[: len(twice) - len(once)])


def test_wav_keeps_channels_and_samples(tmp_path: Path) -> None:
    rows = np.stack([spoken(0.5), -spoken(0.5)])
    write_wav(tmp_path / "new" / "two.wav", rows)
    back, rate = read_wav(tmp_path / "new" / "two.wav")
    assert rate == RATE
    assert np.abs(back - rows).max() < 1 / 16000


def test_a_wav_of_another_width_is_refused(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "wide.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(3)
        file.setframerate(8000)
        file.writeframes(bytes(30))
    with pytest.raises(ValueError, match="24-bit"):
        read_wav(tmp_path / "wide.wav")
