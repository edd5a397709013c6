"""Speech as Opus packets, encoded once, so that a call costs a client next to nothing."""

from functools import cache
from pathlib import Path

import numpy as np
import opuslib_next

from tests.lab import speech

FRAME = 960  # samples of 20 ms at 48 kHz
_SECONDS = 20  # of speech; callers begin again after it
_BIT_RATE = 32_000


@cache
def packets(path: Path = speech.SPOKEN) -> tuple[bytes, ...]:
    """20 ms each, mono, at most the first 20 s of the file."""
    encoder = opuslib_next.Encoder(speech.RATE, 1, opuslib_next.APPLICATION_VOIP)
    encoder.bitrate = _BIT_RATE
    samples = speech.read(path)[: _SECONDS * speech.RATE]
    pcm = np.round(np.clip(samples, -1, 1) * 32767).astype("<i2")
    whole = len(pcm) // FRAME * FRAME
    if not whole:
        raise ValueError(f"{path} is shorter than 20 ms")
    return tuple(
        encoder.encode(pcm[at : at + FRAME].tobytes(), FRAME) for at in range(0, whole, FRAME)
    )
