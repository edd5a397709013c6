"""What a client of Python says: 20 ms at a time, silence while nobody speaks. Pure."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.lab import speech

Frame = npt.NDArray[np.int16]

FRAME = speech.RATE // 50  # samples of 20 ms


class Microphone:
    """Speech of a WAV file of 48 kHz, begun again at its end; it waits where it was silenced."""

    def __init__(self, path: Path) -> None:
        samples, rate = speech.read_wav(path)
        if rate != speech.RATE:
            raise ValueError(f"{path}: {rate} Hz, want {speech.RATE}")
        self._pcm = np.round(np.clip(samples[0], -1, 1) * 32767).astype("<i2")
        self._at = 0

    def frame(self, speaking: bool) -> Frame:
        """The next 20 ms."""
        if not speaking:
            return np.zeros(FRAME, "<i2")
        frame: Frame = self._pcm.take(np.arange(self._at, self._at + FRAME), mode="wrap")
        self._at += FRAME
        return frame
