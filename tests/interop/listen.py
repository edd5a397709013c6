"""What sound says: when it is loud, and whether it is the words that were meant. Pure."""

from collections.abc import Sequence

import numpy as np

from tests.lab import ear, speech

LOUD = 0.01  # RMS of full scale
LIKE = 0.5  # normalised correlation from which it is the same speech; other words reach 0.2
_FRAME = speech.RATE // 50  # samples of 20 ms
_STRETCH_S = 2  # whole seconds of a turn
_PURE = 0.8  # share of a tone's power near its frequency

Levels = Sequence[tuple[float, float]]  # seconds, RMS


def levels(samples: speech.Samples, begun: float = 0.0) -> list[tuple[float, float]]:
    """Of each 20 ms; `begun`: seconds at the first sample."""
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    rms = np.sqrt(np.mean(frames.astype(np.float64) ** 2, axis=1))
    return [(begun + (number + 1) * 0.02, float(each)) for number, each in enumerate(rms)]


def loud_share(heard: Levels, since: float, until: float) -> float | None:
    """How much of that time was loud, 0 to 1; None when nothing is known about it."""
    between = [rms for at, rms in heard if since < at <= until]
    return sum(rms > LOUD for rms in between) / len(between) if between else None


def fault_of_speech(samples: speech.Samples, spoken: speech.Samples) -> str | None:
    """Why the first sound in `samples` is no stretch of `spoken`; both 48 kHz mono."""
    loud = [number for number, (_, rms) in enumerate(levels(samples)) if rms > LOUD]
    if len(loud) < 50:
        return f"only {len(loud) * 20} ms of sound"
    begin = loud[0] * _FRAME
    stretch = samples[begin : begin + _STRETCH_S * speech.RATE]
    found = ear.correlate(stretch, np.tile(spoken, 2), speech.RATE)
    if found.windows and found.median >= LIKE:
        return None
    return f"likeness {found.median:.2f} in {found.windows} windows"


def fault_of_tone(samples: speech.Samples) -> str | None:
    """Why what is loud in `samples` is no steady tone."""
    loud = [number for number, (_, rms) in enumerate(levels(samples)) if rms > LOUD]
    if len(loud) < 50:
        return f"only {len(loud) * 20} ms of sound"
    middle = samples[loud[5] * _FRAME : (loud[5] + 40) * _FRAME]
    power = np.abs(np.fft.rfft(middle * np.hanning(len(middle)))) ** 2
    peak = int(np.argmax(power))
    pure = float(power[max(0, peak - 20) : peak + 21].sum() / power.sum())
    return None if pure > _PURE else f"{pure:.0%} of its power is near {peak * 50 / 40:.0f} Hz"
