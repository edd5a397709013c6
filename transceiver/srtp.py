"""SRTP and SRTCP of one call (RFC 3711), through one buffer that all calls of the process share.

libsrtp works in place. pylibsrtp, which makes the sessions, gives each its own buffer and allocates
for every packet; here nothing of a call is touched but its keys. No other module knows private
names of pylibsrtp.
"""

from collections.abc import Callable
from typing import Any

import pylibsrtp
from pylibsrtp._binding import ffi, lib

MAX_PACKET = 1500  # bytes, plain or protected
USED = ("_srtp",)  # private names of `pylibsrtp.Session`

_TRAILER = 16 + 128 + 4  # at most: tag, MKI, SRTCP index

_size = ffi.new("int *")
_memory = ffi.new("char[]", MAX_PACKET)
_buffer = ffi.buffer(_memory)


class SrtpError(RuntimeError):
    """A packet of ours cannot be protected."""


class Srtp:
    """`receives` and `sends` are the sessions of the two directions.

    `heard`: something authentic came."""

    __slots__ = ("_rx", "_sessions", "_tx", "heard")

    def __init__(self, receives: pylibsrtp.Session, sends: pylibsrtp.Session) -> None:
        self._sessions = receives, sends  # they own what the two handles point to
        self._rx, self._tx = receives._srtp[0], sends._srtp[0]
        self.heard = False

    def unprotect(self, packet: bytes) -> bytes | None:
        """RTP from SRTP; None if it is not authentic, or seen before."""
        plain = _through(lib.srtp_unprotect, self._rx, packet, 0)
        if plain is not None:
            self.heard = True
        return plain

    def unprotect_rtcp(self, packet: bytes) -> bytes | None:
        """RTCP from SRTCP, likewise."""
        plain = _through(lib.srtp_unprotect_rtcp, self._rx, packet, 0)
        if plain is not None:
            self.heard = True
        return plain

    def protect(self, packet: bytes) -> bytes:
        """SRTP from RTP. Raises `SrtpError`."""
        sealed = _through(lib.srtp_protect, self._tx, packet, _TRAILER)
        if sealed is None:
            raise SrtpError(f"libsrtp does not protect an RTP packet of {len(packet)} bytes")
        return sealed

    def protect_rtcp(self, packet: bytes) -> bytes:
        """SRTCP from RTCP. Raises `SrtpError`."""
        sealed = _through(lib.srtp_protect_rtcp, self._tx, packet, _TRAILER)
        if sealed is None:
            raise SrtpError(f"libsrtp does not protect an RTCP packet of {len(packet)} bytes")
        return sealed


def _through(apply: Callable[..., int], session: Any, packet: bytes, spare: int) -> bytes | None:
    """What libsrtp makes of `packet`, which may grow by `spare` bytes; None if it refuses."""
    size = len(packet)
    if size > MAX_PACKET - spare:
        return None
    _size[0] = size
    _buffer[:size] = packet
    if apply(session, _memory, _size):
        return None
    result: bytes = _buffer[: _size[0]]
    return result
