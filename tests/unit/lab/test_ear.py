"""The ear recognises a delayed, noisy, clipped copy, and does not take other words for it."""

import numpy as np
import pytest

from tests.lab.ear import Hearing, Row, correlate
from tests.lab.speech import OTHER, RATE, read, spoken


@pytest.fixture(scope="module")
def speech() -> Row:
    return spoken(12)


def delayed(samples: Row, seconds: float, noise: float = 0.0) -> Row:
    silence = np.zeros(round(seconds * RATE))
    heard = np.concatenate([silence, samples, silence])
    return heard + np.random.default_rng(7).normal(0, noise, len(heard)) if noise else heard


def test_a_copy_is_itself_at_its_delay(speech: Row) -> None:
    heard = correlate(speech, 0.4 * delayed(speech, 0.137), RATE)
    assert heard.median == pytest.approx(1.0, abs=1e-6)
    assert heard.min == pytest.approx(1.0, abs=1e-6)
    assert heard.lag_ms == pytest.approx(137, abs=0.1)
    assert heard.lag_drift_ms == 0
    assert heard.windows >= 9


def test_a_recording_that_began_later_has_a_negative_lag(speech: Row) -> None:
    heard = correlate(speech, speech[2 * RATE :], RATE)
    assert heard.lag_ms == pytest.approx(-2000, abs=0.1)
    assert heard.median == pytest.approx(1.0, abs=1e-6)


def test_noise_lowers_the_likeness_as_theory_says(speech: Row) -> None:
    """Noise of the speech's own power: likeness 1/sqrt(2)."""
    heard = correlate(speech, delayed(speech, 0.2, float(np.sqrt(np.mean(speech**2)))), RATE)
    assert heard.median == pytest.approx(0.71, abs=0.06)


def test_a_shift_of_the_playout_buffer_costs_no_likeness_and_shows_as_drift(speech: Row) -> None:
    half, step = len(speech) // 2, round(0.014 * RATE)
    heard = correlate(speech, np.concatenate([speech[:half], np.zeros(step), speech[half:]]), RATE)
    assert heard.median > 0.99
    assert heard.lag_drift_ms == pytest.approx(14, abs=0.1)


def test_a_second_that_was_lost_shows_in_the_minimum(speech: Row) -> None:
    lost = speech.copy()
    lost[4 * RATE : 5 * RATE] = 0
    assert correlate(speech, delayed(lost, 0.1), RATE).min < 0.3


@pytest.mark.parametrize("recorded", ["other words", "silence", "noise", "reversed"])
def test_what_is_not_the_speech_is_not_recognised(speech: Row, recorded: str) -> None:
    sounds: dict[str, Row] = {
        "other words": np.tile(read(OTHER), 2),
        "silence": np.zeros(13 * RATE),
        "noise": np.random.default_rng(1).normal(0, 0.1, 13 * RATE),
        "reversed": speech[::-1],
    }
    heard = correlate(speech, sounds[recorded], RATE)
    assert heard.median < 0.3
    assert heard.windows >= 1


def test_too_short_a_recording_has_no_windows(speech: Row) -> None:
    assert correlate(speech, speech[: RATE // 2], RATE) == Hearing(0.0, 0.0, 0, 0.0, 0.0)


def test_stereo_is_refused(speech: Row) -> None:
    with pytest.raises(ValueError, match="want mono"):
        correlate(speech, np.stack([speech, speech]), RATE)
