"""The reference ear: is the speech that came back the speech that was sent?

Pure: two rows of samples in, figures out. Each second of the reference that holds speech is looked
for in the recording, near where the whole clip lies; the median of the likenesses counts, since a
client's playout buffer shifts time by some milliseconds in the course of a call. Likeness is the
normalised cross-correlation: 1 = the same waveform, gain aside.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.signal import correlate as cross_correlate

Row = npt.NDArray[Any]

WINDOW_S = 1.0
REACH_S = 0.3  # how far from the clip's lag a window may lie
LONGEST_LAG_S = 10.0  # between the starts of reference and recording
SPEECH_RMS = 0.02  # of full scale; a window below it is a pause


@dataclass(frozen=True, slots=True)
class Hearing:
    """What the ear heard. With no window to judge, the likenesses are 0 and `windows` is 0."""

    median: float
    min: float
    windows: int  # seconds with speech that the recording could hold
    lag_ms: float  # of the recording behind the reference; median of the windows
    lag_drift_ms: float  # lag of the last third of windows minus that of the first


def correlate(reference: Row, recording: Row, rate: int) -> Hearing:
    """Look for `reference` in `recording`; both mono at `rate` Hz. Raises ValueError otherwise."""
    if reference.ndim != 1 or recording.ndim != 1:
        raise ValueError(f"want mono, got shapes {reference.shape} and {recording.shape}")
    reference, recording = reference.astype(np.float64), recording.astype(np.float64)
    size = round(WINDOW_S * rate)
    if len(reference) < size or len(recording) < size:
        return Hearing(0.0, 0.0, 0, 0.0, 0.0)
    around = whole_lag(reference, recording, round(LONGEST_LAG_S * rate))
    found = [
        match
        for start in range(0, len(reference) - size + 1, size)
        if (match := _match(reference[start : start + size], recording, start + around, rate))
    ]
    if not found:
        return Hearing(0.0, 0.0, 0, around / rate * 1e3, 0.0)
    likeness = np.array([match[0] for match in found])
    lags = (around + np.array([match[1] for match in found])) / rate * 1e3
    third = max(1, len(lags) // 3)
    return Hearing(
        median=float(np.median(likeness)),
        min=float(likeness.min()),
        windows=len(found),
        lag_ms=float(np.median(lags)),
        lag_drift_ms=float(np.median(lags[-third:]) - np.median(lags[:third])),
    )


def whole_lag(reference: Row, recording: Row, longest: int) -> int:
    """Samples by which the recording is behind the reference, at most `longest` either way."""
    products = cross_correlate(recording, reference, mode="full", method="fft")
    zero = len(reference) - 1
    low, high = max(0, zero - longest), min(len(products), zero + longest + 1)
    return int(low + np.argmax(products[low:high]) - zero)


def _match(window: Row, recording: Row, at: int, rate: int) -> tuple[float, int] | None:
    """Best likeness near sample `at` of the recording, and its distance from there in samples.

    None when the window holds no speech or the recording does not reach there.
    """
    if np.sqrt(np.mean(window**2)) < SPEECH_RMS or at < 0 or at + len(window) > len(recording):
        return None
    reach = round(REACH_S * rate)
    low, high = max(0, at - reach), min(len(recording), at + len(window) + reach)
    likeness = _likeness(window, recording[low:high])
    best = int(np.argmax(likeness))
    return float(likeness[best]), low + best - at


def _likeness(window: Row, stretch: Row) -> Row:
    """Normalised cross-correlation of the window at every place of the stretch."""
    size = len(window)
    window = window - window.mean()
    products = cross_correlate(stretch, window, mode="valid", method="fft")
    sums = np.concatenate([[0.0], np.cumsum(stretch)])
    squares = np.concatenate([[0.0], np.cumsum(stretch**2)])
    mean = (sums[size:] - sums[:-size]) / size
    energy = np.maximum(squares[size:] - squares[:-size] - size * mean**2, 1e-9)
    return np.asarray(products / np.sqrt(energy * np.sum(window**2)))
