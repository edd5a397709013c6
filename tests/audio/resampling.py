"""The resampler at the edge of a backend: whatever the chunks, the same sound, soon and all of it.

Pure. The sound is a sum of tones of whole hertz, so that what it should be at the other rate is
known exactly, and each second is like the first.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tests.audio.chirp import LOW_HZ
from tests.figures.measurement import Findings, Measurement
from tests.lab.ear import Row, whole_lag
from tests.report import Target
from transceiver.audio.resampler import Resampler

SECONDS = 60.0
BACKENDS = (16000, 22050, 24000, 44100)
CODERS = (24000, 48000)
PAIRS = tuple(
    dict.fromkeys(
        pair
        for backend in BACKENDS
        for coder in CODERS
        if backend != coder
        for pair in ((backend, coder), (coder, backend))
    )
)
HIGH_HZ = 6000  # of the tones; every rate has them
TONES = 24
TARGETS = (
    Target("resampling_chunked_to_whole", "≤", 1e-3, "of full scale"),
    Target("resampling_group_delay", "≤", 10, "ms"),
    Target("resampling_length_error", "=", 0, "samples in 60 s"),
)


class Judged(NamedTuple):
    """One pair of rates."""

    chunked_to_whole: float  # largest difference, of full scale
    delay_ms: float  # longest wait of a sample, and what the waveform is shifted
    length_error: int  # samples
    error: float  # rms of the difference to the true sound, against that of the sound


def measurements() -> list[Measurement]:
    return [Measurement("resampling", TARGETS, measure)]


def measure(seconds: float = SECONDS) -> Findings:
    judged = {pair: judge(*pair, seconds) for pair in PAIRS}
    return Findings(
        {
            "resampling_chunked_to_whole": max(each.chunked_to_whole for each in judged.values()),
            "resampling_group_delay": max(each.delay_ms for each in judged.values()),
            "resampling_length_error": max(abs(each.length_error) for each in judged.values()),
        },
        {f"{a} to {b}": each._asdict() for (a, b), each in judged.items()},
    )


def judge(rate_in: int, rate_out: int, seconds: float, seed: int = 1) -> Judged:
    """`seconds` of sound, at least 3, in one piece and in many."""
    pcm = np.round(tones(rate_in, seconds) * 32767).astype(np.int16)
    one = Resampler(rate_in, rate_out)
    whole = _row(one.push(pcm.tobytes()) + one.flush())
    many, waited, made = Resampler(rate_in, rate_out), 0.0, bytearray()
    taken = 0
    for chunk in _chunks(pcm, random.Random(seed)):
        taken += len(chunk)
        made += many.push(chunk.tobytes())
        waited = max(waited, taken / rate_in - len(made) / 2 / rate_out)
    made += many.flush()
    chunked = _row(bytes(made))
    both = min(len(whole), len(chunked))
    differs = float(np.max(np.abs(whole[:both] - chunked[:both])))
    middle = chunked[rate_out : 3 * rate_out]  # not the ends, where a filter sees silence
    wanted = tones(rate_out, len(middle) / rate_out)
    shift = whole_lag(wanted, middle, rate_out // 5)
    return Judged(
        chunked_to_whole=differs if len(whole) == len(chunked) else 1.0,
        delay_ms=round(1e3 * (waited + abs(shift) / rate_out), 3),
        length_error=len(chunked) - round(seconds * rate_out),
        error=round(float(np.sqrt(np.mean((middle - wanted) ** 2) / np.mean(wanted**2))), 5),
    )


def tones(rate: int, seconds: float, seed: int = 1) -> Row:
    """The same sound at any rate, as loud as speech."""
    source = np.random.default_rng(seed)
    t = np.arange(rate) / rate
    second = np.zeros(rate)
    for hertz, phase in zip(
        source.integers(round(LOW_HZ), HIGH_HZ, TONES),
        source.uniform(0, 2 * np.pi, TONES),
        strict=True,
    ):
        second += np.sin(2 * np.pi * hertz * t + phase)
    return np.resize(second / TONES, round(seconds * rate))


def _chunks(pcm: Row, source: random.Random) -> Iterator[Row]:
    at = 0
    while at < len(pcm):
        size = source.choice((1, 7, 160, 441, 480, 960, 3001))
        yield pcm[at : at + size]
        at += size


def _row(pcm: bytes) -> Row:
    return np.frombuffer(pcm, np.int16) / 32768
