"""Recorded speech as Opus packets of several kinds, and a stream to number them."""

from functools import cache

import numpy as np
import opuslib_next

from tests.lab import speech
from transceiver.audio.opus import Encoder
from transceiver.rtp import Packet

RATE = 48_000  # Hz, of the encoder; so samples are ticks


@cache
def pcm(seconds: float = 4.0, channels: int = 1) -> bytes:
    """A second channel comes 100 ms after the first, so that they share little."""
    samples = speech.read(speech.SPOKEN)[RATE : RATE + round(seconds * RATE)]
    whole = np.round(np.clip(samples, -1, 1) * 32767).astype("<i2")
    return np.stack([np.roll(whole, RATE // 10 * n) for n in range(channels)], axis=1).tobytes()


@cache
def packets(ms: int = 20, fec: bool = False, seconds: float = 4.0) -> tuple[bytes, ...]:
    """Mono, 32 kbit/s, SILK or hybrid."""
    encoder = Encoder(RATE, fec=fec)
    return tuple(encoder.encode(piece) for piece in _pieces(pcm(seconds), ms))


@cache
def of_libopus(
    ms: float, application: int, channels: int = 1, fec: bool = False, wide: bool = False
) -> tuple[bytes, ...]:
    """What `Encoder` does not make; `wide` is at most 8 kHz of band: SILK alone."""
    encoder = opuslib_next.Encoder(RATE, channels, application)
    encoder.inband_fec = int(fec)
    encoder.packet_loss_perc = 20
    if wide:
        encoder.max_bandwidth = opuslib_next.BANDWIDTH_WIDEBAND
    size = round(ms * RATE / 1000)
    return tuple(encoder.encode(piece, size) for piece in _pieces(pcm(2.0, channels), ms, channels))


def _pieces(samples: bytes, ms: float, channels: int = 1) -> list[bytes]:
    size = round(ms * RATE / 1000) * 2 * channels
    return [samples[at : at + size] for at in range(0, len(samples) - size + 1, size)]


def packet(
    sequence: int, timestamp: int | None = None, payload: bytes = b"", ssrc: int = 7
) -> Packet:
    """Numbers of any size, cut to their fields; 20 ms a packet if no timestamp is given."""
    ticks = sequence * 960 if timestamp is None else timestamp
    return Packet(111, sequence & 0xFFFF, ticks & 0xFFFFFFFF, ssrc, payload)
