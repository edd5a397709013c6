"""What the people of test conversations say: phrases of recorded speech, 20 ms at a time.

Pure. A mouth that says nothing is not digitally silent: a quiet room is heard, always the same.
"""

from functools import cache

import numpy as np

from tests.lab import speech
from tests.lab.ear import Row
from transceiver.audio.opus import Encoder

RATE = speech.RATE
FRAME = RATE // 50  # samples of a packet
LOUD = 0.012  # RMS of full scale from which 20 ms of the recordings are speech
GAP = 12  # packets without speech that part two phrases
LEAST_S = 0.6  # of a phrase

_ROOM = 10 ** (-66 / 20)  # of full scale
_ROOM_FRAMES = 97


@cache
def phrases() -> tuple[Row, ...]:
    """From the first loud 20 ms of each to its last, whole packets, 0.6 to 4.4 s long."""
    return tuple(
        piece
        for path in (speech.SPOKEN, speech.OTHER)
        for piece in cut(speech.read(path))
        if len(piece) >= LEAST_S * RATE
    )


def cut(samples: Row) -> list[Row]:
    """The phrases between pauses of `GAP` packets or more."""
    count = len(samples) // FRAME
    frames = samples[: count * FRAME].reshape(count, FRAME)
    loud = np.flatnonzero(np.sqrt(np.mean(frames**2, axis=1)) >= LOUD)
    if not len(loud):
        return []
    runs = np.split(loud, np.flatnonzero(np.diff(loud) > GAP) + 1)
    return [samples[run[0] * FRAME : (run[-1] + 1) * FRAME] for run in runs]


def phrase(number: int, seconds: float | None = None) -> Row:
    """A phrase of any number, cut after `seconds`; said again where it is shorter."""
    samples = phrases()[number % len(phrases())]
    if seconds is None:
        return samples
    size = round(seconds * 50) * FRAME
    return np.resize(samples, size)


class Mouth:
    """`packet` is asked for every 20 ms."""

    def __init__(self) -> None:
        self._encoder = Encoder(RATE)
        self._waits: list[Row] = []  # frames
        self._room = 0

    @property
    def speaking(self) -> bool:
        """Whether the next packet is speech."""
        return bool(self._waits)

    def say(self, samples: Row) -> None:
        """After what it says already; what fills no packet is left out."""
        count = len(samples) // FRAME
        self._waits += list(samples[: count * FRAME].reshape(count, FRAME))

    def hush(self) -> None:
        self._waits.clear()

    def packet(self) -> bytes:
        """The next 20 ms as Opus."""
        if self._waits:
            frame = self._waits.pop(0)
        else:
            frame = _room()[self._room]
            self._room = (self._room + 1) % _ROOM_FRAMES
        pcm = np.round(np.clip(frame, -1, 1) * 32767).astype("<i2")
        return self._encoder.encode(pcm.tobytes())


@cache
def _room() -> Row:
    noise = np.random.default_rng(7).normal(0, _ROOM, _ROOM_FRAMES * FRAME)
    return np.asarray(noise.reshape(_ROOM_FRAMES, FRAME))
