"""Turns by loudness: as much of `server_vad` as a test server needs. Pure."""

from typing import NamedTuple

import numpy as np

from tests.realtime_server.sound import BYTES_PER_MS

FRAME_MS = 10
LOUD = 300.0  # RMS of a frame, of 32767: above noise and what an idle encoder makes
MIN_SPEECH_MS = 60


class Started(NamedTuple):
    audio_start_ms: int  # on the time line of all that was appended; with the padding


class Stopped(NamedTuple):
    audio_end_ms: int


class Turns:
    """`silence_ms` ends a turn; both settings may change at any time."""

    def __init__(self, silence_ms: int = 500, padding_ms: int = 300) -> None:
        self.silence_ms = silence_ms
        self.padding_ms = padding_ms
        self.speaking = False
        self._rest = b""
        self._ms = 0
        self._loud_ms = 0
        self._quiet_ms = 0

    def hear(self, samples: bytes) -> list[Started | Stopped]:
        """Take sound of any length."""
        samples = self._rest + samples
        size = FRAME_MS * BYTES_PER_MS
        whole = len(samples) - len(samples) % size
        self._rest = samples[whole:]
        frames = np.frombuffer(samples[:whole], "<i2").reshape(-1, size // 2).astype(np.float64)
        heard: list[Started | Stopped] = []
        for loud in np.sqrt((frames**2).mean(axis=1)) > LOUD:
            self._ms += FRAME_MS
            heard += self._frame(bool(loud))
        return heard

    def _frame(self, loud: bool) -> list[Started | Stopped]:
        self._loud_ms = self._loud_ms + FRAME_MS if loud else 0
        self._quiet_ms = 0 if loud else self._quiet_ms + FRAME_MS
        if not self.speaking and self._loud_ms >= MIN_SPEECH_MS:
            self.speaking = True
            return [Started(max(0, self._ms - MIN_SPEECH_MS - self.padding_ms))]
        if self.speaking and self._quiet_ms >= self.silence_ms:
            self.speaking = False
            return [Stopped(self._ms)]
        return []
