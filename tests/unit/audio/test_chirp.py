"""The delay of each moment is read to a fraction of a millisecond, and never from other sounds."""

import numpy as np
import pytest

from tests.audio.chirp import SWEEP_S, Chirps, chirps, delays
from tests.audio.listening import Arrival, listen
from tests.audio.score import FIRST_TIMESTAMP, encode
from tests.lab import speech
from tests.lab.ear import Row
from tests.lab.speech import RATE

CODER_MS = 6.5  # what libopus looks ahead in its speech mode


@pytest.fixture(scope="module")
def signal() -> Chirps:
    return chirps(5)


def after(samples: Row, seconds: float) -> Row:
    return np.concatenate([np.zeros(round(seconds * RATE)), samples])


def coded(samples: Row, *, fec: bool, frame_ms: int = 20) -> Row:
    notes = encode(samples, fec=fec, frame_ms=frame_ms)
    arrivals = [Arrival(note.at, *note[1:4]) for note in notes]
    return listen(arrivals, FIRST_TIMESTAMP).samples


def test_a_copy_has_its_delay_at_each_sweep(signal: Chirps) -> None:
    found = delays(signal, after(0.3 * signal.samples, 0.25))
    assert [each.at for each in found] == list(signal.starts)
    assert {each.samples for each in found} == {round(0.25 * RATE)}
    assert min(each.likeness for each in found) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("fec", [False, True])
@pytest.mark.parametrize("frame_ms", [10, 20, 60])
@pytest.mark.parametrize("late_s", [0.0, 0.0371])
def test_a_known_delay_after_a_real_coder(
    signal: Chirps, fec: bool, frame_ms: int, late_s: float
) -> None:
    found = delays(signal, coded(after(signal.samples, late_s), fec=fec, frame_ms=frame_ms))
    assert len(found) >= 0.8 * len(signal.starts)
    errors_ms = [1e3 * (each.samples / RATE - late_s) - CODER_MS for each in found]
    assert max(map(abs, errors_ms)) < 0.5


def test_a_step_in_the_middle_is_seen_where_it_happened(signal: Chirps) -> None:
    half = signal.starts[len(signal.starts) // 2] - 10
    found = delays(
        signal, np.concatenate([signal.samples[:half], np.zeros(960), signal.samples[half:]])
    )
    assert len(found) == len(signal.starts)
    assert all(each.samples == (960 if each.at > half else 0) for each in found)


def test_lost_sweeps_are_left_out(signal: Chirps) -> None:
    lost = signal.starts[3:6]
    recording = signal.samples.copy()
    recording[lost[0] : lost[-1] + round(SWEEP_S * RATE)] = 0
    found = delays(signal, recording)
    assert [each.at for each in found] == [at for at in signal.starts if at not in lost]


@pytest.mark.parametrize("recorded", ["nothing", "silence", "speech", "noise", "other chirps"])
def test_other_sounds_have_no_delay(signal: Chirps, recorded: str) -> None:
    sounds: dict[str, Row] = {
        "nothing": np.zeros(0),
        "silence": np.zeros(5 * RATE),
        "speech": speech.spoken(5),
        "noise": np.random.default_rng(1).normal(0, 0.2, 5 * RATE),
        "other chirps": chirps(5, seed=2).samples,
    }
    found = delays(signal, sounds[recorded])
    if recorded == "other chirps":  # sweeps are sweeps, but they lie elsewhere
        assert np.ptp([each.samples for each in found]) > 0.02 * RATE
    else:
        assert found == []


def test_another_seed_has_its_sweeps_elsewhere() -> None:
    assert chirps(3).starts == chirps(3).starts
    assert chirps(3).starts != chirps(3, seed=2).starts
