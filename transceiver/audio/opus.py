"""Opus by the system's libopus: mono 16-bit samples at the backend's rate.

opuslib-next brings the library's handles. Its own calls copy samples through Python lists, so
decode and encode here go straight to the handles with preallocated buffers. One object belongs to
one direction of one call.
"""

import ctypes
import weakref

from opuslib_next import APPLICATION_VOIP
from opuslib_next.api import c_int16_pointer, ctl
from opuslib_next.api import decoder as decoding
from opuslib_next.api import encoder as encoding
from opuslib_next.exceptions import OpusError

RATES = (8000, 12000, 16000, 24000, 48000)  # Hz that libopus itself converts
BITRATE = 32_000  # bit/s
COMPLEXITY = 5  # of 10
EXPECTED_LOSS = 10  # per cent told to the coder while FEC is on; with 0 it makes none

_MAX_MS = 120  # longest packet, RFC 6716 section 3.2
_MAX_PACKET = 1200  # bytes


class CodecError(ValueError):
    """libopus refused a packet or a setting."""


class Decoder:
    """Packets in, samples out. Each result is 16-bit native samples as bytes."""

    def __init__(self, rate: int) -> None:
        _check(rate)
        self.rate = rate
        self._state = decoding.create_state(rate, 1)
        weakref.finalize(self, decoding.destroy, self._state)
        self._capacity = rate * _MAX_MS // 1000
        self._buffer = (ctypes.c_int16 * self._capacity)()
        self._pointer = ctypes.cast(self._buffer, c_int16_pointer)
        self._view = memoryview(self._buffer).cast("B")

    def decode(self, packet: bytes) -> bytes:
        """Samples of a packet that arrived. Raises `CodecError`."""
        return self._run(packet, len(packet), self._capacity, 0)

    def conceal(self, samples: int) -> bytes:
        """`samples` that stand in for a lost packet; a multiple of 2.5 ms."""
        return self._run(None, 0, samples, 0)

    def recover(self, following: bytes, samples: int) -> bytes:
        """A lost packet of `samples`, from the FEC data of the one after it, else concealed.

        Decode `following` itself afterwards. Raises `CodecError`.
        """
        return self._run(following, len(following), samples, 1)

    def _run(self, packet: bytes | None, size: int, samples: int, fec: int) -> bytes:
        if packet is not None and not size:
            raise CodecError("empty packet")  # libopus would take it for a lost one
        count = decoding.libopus_decode(self._state, packet, size, self._pointer, samples, fec)
        if count < 0:
            raise CodecError(f"decode of {size} bytes: {OpusError(count)}")
        return bytes(self._view[: count * 2])


class Encoder:
    """Samples in, packets out, tuned for speech."""

    def __init__(
        self, rate: int, *, bitrate: int = BITRATE, complexity: int = COMPLEXITY, fec: bool = False
    ) -> None:
        _check(rate)
        self.rate = rate
        self._state = encoding.create_state(rate, 1, APPLICATION_VOIP)
        weakref.finalize(self, encoding.destroy, self._state)
        self._buffer = (ctypes.c_ubyte * _MAX_PACKET)()
        self._pointer = ctypes.cast(self._buffer, ctypes.c_char_p)
        self._view = memoryview(self._buffer).cast("B")
        self._set(ctl.set_bitrate, bitrate)
        self._set(ctl.set_complexity, complexity)
        self._set(ctl.set_dtx, 0)
        self.fec = fec

    @property
    def fec(self) -> bool:
        """Whether packets carry a coarse copy of the one before."""
        return self._fec

    @fec.setter
    def fec(self, on: bool) -> None:
        self._set(ctl.set_inband_fec, int(on))
        self._set(ctl.set_packet_loss_perc, EXPECTED_LOSS if on else 0)
        self._fec = on

    def encode(self, samples: bytes) -> bytes:
        """One packet of 2.5, 5, 10, 20, 40 or 60 ms. Raises `CodecError`."""
        pcm = ctypes.cast(ctypes.c_char_p(samples), c_int16_pointer)
        size = encoding.libopus_encode(
            self._state, pcm, len(samples) // 2, self._pointer, _MAX_PACKET
        )
        if size < 0:
            raise CodecError(f"encode of {len(samples) // 2} samples: {OpusError(size)}")
        return bytes(self._view[:size])

    def _set(self, request: object, value: int) -> None:
        encoding.encoder_ctl(self._state, request, value)


def _check(rate: int) -> None:
    if rate not in RATES:
        raise CodecError(f"rate {rate}: Opus runs at {', '.join(map(str, RATES))} Hz")
