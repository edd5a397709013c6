"""Recorded speech for test clients, and WAV files to keep what they heard.

Samples are float32, mono, -1..1. Says nothing about likeness: that is `ear`.
"""

import wave
from functools import cache
from math import ceil
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

RATE = 48_000  # Hz, of everything here
VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "speech"
SPOKEN = VECTORS / "fireside.flac"
OTHER = VECTORS / "wonders.flac"  # same reader, other words

FULL_SCALE = np.float32(32768)

Samples = npt.NDArray[np.float32]


@cache
def read(path: Path) -> Samples:
    """Decode one file of speech, resampled to 48 kHz."""
    resampler = av.AudioResampler("s16", "mono", RATE)
    with av.open(str(path)) as container:
        decoded = [
            piece.to_ndarray().ravel()
            for frame in container.decode(audio=0)
            for piece in resampler.resample(frame)
        ]
    decoded += [piece.to_ndarray().ravel() for piece in resampler.resample(None)]
    samples = np.concatenate(decoded).astype(np.float32) / FULL_SCALE
    samples.flags.writeable = False  # shared by every caller
    return samples


def spoken(seconds: float, path: Path = SPOKEN) -> Samples:
    """The first `seconds` of a passage, begun again as often as needed."""
    samples = read(path)
    wanted = round(seconds * RATE)
    return np.tile(samples, ceil(wanted / len(samples)))[:wanted]


def write_wav(path: Path, samples: npt.NDArray[np.floating], rate: int = RATE) -> None:
    """Write 16-bit PCM: one row per channel, or a plain row for mono."""
    channels = np.atleast_2d(samples)
    pcm = np.round(np.clip(channels, -1, 1) * 32767).astype("<i2")
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(len(channels))
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm.T.tobytes())


def read_wav(path: Path) -> tuple[Samples, int]:
    """Rows of samples, one per channel, and the rate in Hz. 16-bit PCM only."""
    with wave.open(str(path), "rb") as file:
        if file.getsampwidth() != 2:
            raise ValueError(f"{path}: {file.getsampwidth() * 8}-bit samples, want 16-bit")
        pcm = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        rows = pcm.reshape(-1, file.getnchannels()).T.astype(np.float32) / FULL_SCALE
        return rows, file.getframerate()
