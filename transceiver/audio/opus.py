"""Opus by the system's libopus: mono 16-bit samples at the backend's rate.

opuslib-next brings the library and its settings. Its own calls copy samples through Python lists,
so decode and encode here are functions of our own: plain addresses and lengths, buffers made once,
and no allocation but the result. One object belongs to one direction of one call.
"""

import ctypes
import weakref
from typing import Any

from opuslib_next import APPLICATION_VOIP
from opuslib_next.api import ctl, libopus
from opuslib_next.api import decoder as decoding
from opuslib_next.api import encoder as encoding
from opuslib_next.exceptions import OpusError

RATES = (8000, 12000, 16000, 24000, 48000)  # Hz that libopus itself converts
BITRATE = 32_000  # bit/s
COMPLEXITY = 5  # of 10
EXPECTED_LOSS = 10  # per cent told to the coder while FEC is on; with 0 it makes none

_MAX_MS = 120  # longest packet, RFC 6716 section 3.2
_MAX_PACKET = 1200  # bytes
_MAX_FRAMES = 48  # in a packet
_CELT_ONLY = 16 << 3  # first bytes from here on: packets without SILK, so without FEC


def _function(name: str, *arguments: Any) -> Any:
    """A libopus function of our own: declaring it changes nothing for opuslib's callers."""
    function = libopus[name]
    function.argtypes = arguments
    function.restype = ctypes.c_int
    return function


_address, _int, _bytes = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_decode = _function("opus_decode", _address, _bytes, _int, _address, _int, _int)
_encode = _function("opus_encode", _address, _bytes, _int, _address, _int)
_parse = _function("opus_packet_parse", _bytes, _int, _address, _address, _address, _address)
_frame_size = _function("opus_packet_get_samples_per_frame", _bytes, _int)


class CodecError(ValueError):
    """libopus refused a packet or a setting."""


class Decoder:
    """Packets in, samples out. Each result is 16-bit native samples as bytes."""

    def __init__(self, rate: int) -> None:
        _check(rate)
        self.rate = rate
        self._handle = decoding.create_state(rate, 1)
        weakref.finalize(self, decoding.destroy, self._handle)
        self._state = _address_of(self._handle)
        self._capacity = rate * _MAX_MS // 1000
        self._buffer = (ctypes.c_int16 * self._capacity)()
        self._samples = ctypes.addressof(self._buffer)
        self._view = memoryview(self._buffer).cast("B")
        self._has_silk = False  # the last packet decoded

    def decode(self, packet: bytes) -> bytes:
        """Samples of a packet that arrived. Raises `CodecError`."""
        if not packet:
            raise CodecError("empty packet")  # libopus would take it for a lost one
        samples = self._run(packet, len(packet), self._capacity, 0)
        self._has_silk = packet[0] < _CELT_ONLY
        return samples

    def conceal(self, samples: int) -> bytes:
        """`samples` that stand in for a lost packet; a multiple of 2.5 ms."""
        return self._run(None, 0, samples, 0)

    def recoverable(self, following: bytes) -> int:
        """How many lost samples just before `following` its FEC data restores; 0 without any."""
        if not self._has_silk or not carries_fec(following):
            return 0
        return int(_frame_size(following, self.rate))

    def recover(self, following: bytes, samples: int) -> bytes:
        """The `recoverable` samples before `following`; more or without FEC data: concealed.

        Decode `following` itself afterwards. Raises `CodecError` of what is not `recoverable`.
        """
        return self._run(following, len(following), samples, 1)

    def reset(self) -> None:
        """Forget all packets: another stream begins."""
        decoding.decoder_ctl(self._handle, ctl.reset_state)
        self._has_silk = False

    def _run(self, packet: bytes | None, size: int, samples: int, fec: int) -> bytes:
        count = _decode(self._state, packet, size, self._samples, samples, fec)
        if count < 0:
            raise CodecError(f"decode of {size} bytes: {OpusError(count)}")
        return self._view[: count * 2].tobytes()


class Encoder:
    """Samples in, packets out, tuned for speech."""

    def __init__(
        self, rate: int, *, bitrate: int = BITRATE, complexity: int = COMPLEXITY, fec: bool = False
    ) -> None:
        _check(rate)
        self.rate = rate
        self._handle = encoding.create_state(rate, 1, APPLICATION_VOIP)
        weakref.finalize(self, encoding.destroy, self._handle)
        self._state = _address_of(self._handle)
        self._buffer = (ctypes.c_ubyte * _MAX_PACKET)()
        self._packet = ctypes.addressof(self._buffer)
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
        size = _encode(self._state, samples, len(samples) // 2, self._packet, _MAX_PACKET)
        if size < 0:
            raise CodecError(f"encode of {len(samples) // 2} samples: {OpusError(size)}")
        return self._view[:size].tobytes()

    def _set(self, request: object, value: int) -> None:
        encoding.encoder_ctl(self._handle, request, value)


def carries_fec(packet: bytes) -> bool:
    """Whether the packet holds a coarse copy of the frame before it.

    Reads the LBRR flags at the head of its first frame, RFC 6716 section 4.2.4. False of a
    malformed packet.
    """
    if not packet or packet[0] >= _CELT_ONLY:
        return False
    sizes = (ctypes.c_int16 * _MAX_FRAMES)()
    start = ctypes.c_int()
    sizes_at, start_at = ctypes.addressof(sizes), ctypes.addressof(start)
    if _parse(packet, len(packet), None, None, sizes_at, start_at) < 1 or sizes[0] < 2:
        return False  # a frame of 0 or 1 bytes is DTX
    frames = max(1, _frame_size(packet, 48000) // 960)  # SILK's own: 10 or 20 ms each
    flags = packet[start.value]  # voice activity of each, then LBRR; a mono ear needs no side's
    return bool(flags >> (7 - frames) & 1)


def _address_of(state: Any) -> int | None:
    return ctypes.cast(state, ctypes.c_void_p).value


def _check(rate: int) -> None:
    if rate not in RATES:
        raise CodecError(f"rate {rate}: Opus runs at {', '.join(map(str, RATES))} Hz")
