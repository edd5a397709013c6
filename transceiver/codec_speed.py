"""How fast this core is at the codec: what the default capacity is made from."""

import math
import random
import struct
import time

from transceiver.audio.opus import Decoder, Encoder

RATE = 24000  # Hz, as backends use
PACKETS = 50  # a second
PASSES = 3

_FRAME = RATE // PACKETS
_SYLLABLE = 10  # packets
_PITCH = 130  # Hz


def measure() -> float:
    """Seconds to decode and encode one second of something like speech, with FEC.

    Each packet counts by its fastest pass, so another program on the core hardly shows. Takes less
    than a tenth of a second. Raises `CodecError`.
    """
    packets = _syllable() * (PACKETS // _SYLLABLE)
    best = [math.inf] * PACKETS
    for _ in range(PASSES):
        decoder, encoder = Decoder(RATE), Encoder(RATE, fec=True)
        for number, packet in enumerate(packets):
            began = time.perf_counter()
            encoder.encode(decoder.decode(packet))
            best[number] = min(best[number], time.perf_counter() - began)
    return sum(best)


def _syllable() -> list[bytes]:
    """A voice's overtones that rise and fall, with some breath: silence would be too easy."""
    dice, encoder, count = random.Random(1), Encoder(RATE), _FRAME * _SYLLABLE
    samples = []
    for n in range(count):
        phase = 2 * math.pi * _PITCH * n / RATE
        voice = sum(math.sin(phase * k) / k for k in range(1, 12)) + dice.gauss(0, 0.1)
        samples.append(round(4000 * math.sin(math.pi * n / count) * voice))
    return [
        encoder.encode(struct.pack(f"{_FRAME}h", *samples[n : n + _FRAME]))
        for n in range(0, count, _FRAME)
    ]
