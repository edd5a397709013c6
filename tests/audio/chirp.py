"""A signal from which the delay of each moment can be read.

Pure. Short sweeps with uneven gaps: their order tells the delay of the whole without doubt, and a
matched filter tells that of each sweep to a fraction of a millisecond, even after two coders. The
sweep stays within the band that a coder of speech keeps at any rate.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.signal import correlate
from scipy.signal import windows as shapes

from tests.lab.ear import Row, whole_lag
from tests.lab.speech import RATE

LEVEL = 0.5  # of full scale
SWEEP_S = 0.05
LOW_HZ, HIGH_HZ = 300.0, 3400.0
GAP_S = (0.05, 0.11)  # between two sweeps, drawn anew for each
REACH_S = 0.08  # how far a sweep may lie from where the whole lies; no other is so near
LONGEST_S = 3.0  # delay of the whole, either way
HEARD = 0.5  # likeness below which a sweep was not heard


@dataclass(frozen=True, slots=True)
class Chirps:
    samples: Row  # at `RATE`
    starts: tuple[int, ...]  # samples at which a sweep begins


class Delay(NamedTuple):
    """One sweep that was heard."""

    at: int  # sample of the signal where it begins
    samples: int  # by which it is late in the recording
    likeness: float  # 1 = the same waveform


def chirps(seconds: float, seed: int = 1) -> Chirps:
    """The signal; another seed has its sweeps elsewhere."""
    source = np.random.default_rng(seed)
    samples = np.zeros(round(seconds * RATE))
    shape = sweep()
    starts = []
    at = round(GAP_S[1] * RATE)
    while at + len(shape) <= len(samples):
        samples[at : at + len(shape)] = shape
        starts.append(at)
        at += len(shape) + round(source.uniform(*GAP_S) * RATE)
    return Chirps(samples, tuple(starts))


def sweep() -> Row:
    """One sweep, from low to high, softly begun and ended."""
    t = np.arange(round(SWEEP_S * RATE)) / RATE
    phase = 2 * np.pi * (LOW_HZ * t + (HIGH_HZ - LOW_HZ) / (2 * SWEEP_S) * t**2)
    return np.asarray(LEVEL * shapes.tukey(len(t), 0.5) * np.sin(phase))


def delays(signal: Chirps, recording: Row) -> list[Delay]:
    """Each sweep that is found in the recording, in order; sweeps that were lost are left out."""
    if not len(recording):
        return []
    shape = sweep()
    around = whole_lag(signal.samples, recording, round(LONGEST_S * RATE))
    found = (_find(shape, recording, start, start + around) for start in signal.starts)
    return [each for each in found if each is not None and each.likeness >= HEARD]


def _find(shape: Row, recording: Row, start: int, near: int) -> Delay | None:
    """The best match within reach of sample `near`; None where the recording does not reach."""
    reach, size = round(REACH_S * RATE), len(shape)
    low, high = max(0, near - reach), min(len(recording), near + size + reach)
    if high - low < size:
        return None
    stretch = recording[low:high]
    match = correlate(stretch, shape, mode="valid", method="fft")
    best = int(np.argmax(match))
    energy = np.sum(stretch[best : best + size] ** 2) * np.sum(shape**2)
    return Delay(start, low + best - start, float(match[best] / np.sqrt(max(energy, 1e-9))))
