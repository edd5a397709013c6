"""One call's Opus encoder as the network needs it: FEC while packets get lost, silence for little.

Pure. A settled encoder gives packets for digital silence that differ in nothing one can hear, so
the last of them is sent again and again; the encoder goes on from there when talk begins.
"""

from transceiver.audio.opus import Encoder

LOSSY = 0.01  # share of packets lost that turns FEC on
FEC_S = 10.0  # and for how long
SETTLED = 10  # frames of silence until one is as good as the next


class Voice:
    def __init__(self, rate: int) -> None:
        """`rate` in Hz, one of `opus.RATES`. Raises `CodecError`."""
        self._encoder = Encoder(rate)
        self._zeros = bytes(rate // 50 * 2)
        self._lengths = [rate * tenths // 10_000 * 2 for tenths in (600, 400, 200, 100, 50, 25)]
        self._fec_until = 0.0
        self._silent = b""
        self._silences = 0  # encoded in a row

    @property
    def fec(self) -> bool:
        return self._encoder.fec

    def loss(self, fraction: float, now: float) -> None:
        """The client's report: this share of our packets was lost lately."""
        if fraction >= LOSSY:
            self._fec_until = now + FEC_S
        fec = now < self._fec_until
        if fec != self._encoder.fec:
            self._encoder.fec = fec
            self._silences = 0

    def encode(self, samples: bytes) -> bytes:
        """One packet of 2.5, 5, 10, 20, 40 or 60 ms. Raises `CodecError`."""
        self._silences = 0
        return self._encoder.encode(samples)

    def silence(self) -> bytes:
        """A packet of 20 ms that one cannot hear."""
        if self._silences < SETTLED:
            self._silent = self._encoder.encode(self._zeros)
            self._silences += 1
        return self._silent

    def cut(self, samples: bytes) -> list[bytes]:
        """`samples`, a multiple of 2.5 ms, in as few pieces as `encode` takes."""
        if len(samples) in self._lengths:
            return [samples]
        pieces: list[bytes] = []
        at = 0
        for length in self._lengths:
            while len(samples) - at >= length:
                pieces.append(samples[at : at + length])
                at += length
        return pieces
