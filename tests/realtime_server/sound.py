"""The voice of the test server: 24 kHz, 16-bit mono, little-endian."""

from functools import cache

import numpy as np

from tests.lab import speech

RATE = 24_000  # Hz
BYTES_PER_MS = RATE * 2 // 1000
TONE_HZ = 440.0
TONE_PEAK = 8000


@cache
def tone(seconds: float, hertz: float = TONE_HZ) -> bytes:
    at = np.arange(round(seconds * RATE)) / RATE
    return np.round(TONE_PEAK * np.sin(2 * np.pi * hertz * at)).astype("<i2").tobytes()


@cache
def spoken(seconds: float) -> bytes:
    samples = speech.spoken(seconds)[::2]  # the passage holds little above 12 kHz
    return np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
