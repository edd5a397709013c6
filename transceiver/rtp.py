"""RTP packets (RFC 3550 section 5.1) and what a receiver counts about them.

Pure. Header extensions and CSRCs are skipped, not interpreted: our answers negotiate none that
carries anything for us. SRTP is `dtls.py`, reports are `rtcp.py`.
"""

import enum
import struct
from dataclasses import dataclass

CLOCK_RATE = 48000  # of Opus, whatever the coder's own rate (RFC 7587 section 4.1)
FRAME = 960  # ticks in 20 ms

_HEADER = struct.Struct("!BBHII")
_VERSION = 2 << 6
_MAX_DROPOUT = 3000  # RFC 3550 appendix A.1
_MAX_MISORDER = 100
_MAX_PACKET = 6 * FRAME  # ticks; more between two packets in a row is a pause of the sender


class Reject(enum.StrEnum):
    """Why bytes are no RTP packet."""

    TRUNCATED = "truncated"
    BAD_VERSION = "bad_version"
    BAD_PADDING = "bad_padding"


class RtpError(ValueError):
    def __init__(self, reason: Reject, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


@dataclass(slots=True)
class Packet:
    payload_type: int
    sequence: int
    timestamp: int  # ticks of CLOCK_RATE
    ssrc: int
    payload: bytes
    marker: bool = False


def parse(data: bytes) -> Packet:
    """Read one packet. Raises `RtpError`, and nothing else."""
    size = len(data)
    if size < _HEADER.size:
        raise RtpError(Reject.TRUNCATED, f"{size} bytes, need {_HEADER.size}")
    flags, kind, sequence, timestamp, ssrc = _HEADER.unpack_from(data)
    if flags >> 6 != 2:
        raise RtpError(Reject.BAD_VERSION, f"version {flags >> 6}")
    start = _HEADER.size + 4 * (flags & 0x0F)
    if flags & 0x10:
        if start + 4 > size:
            raise RtpError(Reject.TRUNCATED, f"extension header at byte {start} of {size}")
        start += 4 + 4 * int.from_bytes(data[start + 2 : start + 4], "big")
    end = size
    if start > end:
        raise RtpError(Reject.TRUNCATED, f"payload at byte {start} of {size}")
    if flags & 0x20:
        padding = data[-1]
        if not 0 < padding <= size - start:
            raise RtpError(Reject.BAD_PADDING, f"{padding} of {size - start} bytes")
        end -= padding
    return Packet(kind & 0x7F, sequence, timestamp, ssrc, data[start:end], kind >= 0x80)


def build(packet: Packet) -> bytes:
    """The packet as bytes: no CSRC, no extension, no padding."""
    before = header(
        packet.payload_type, packet.sequence, packet.timestamp, packet.ssrc, packet.marker
    )
    return before + packet.payload


def header(payload_type: int, sequence: int, timestamp: int, ssrc: int, marker: bool) -> bytes:
    """What goes before a payload: 12 bytes, fields as in `Packet`."""
    kind = payload_type | 0x80 if marker else payload_type
    return _HEADER.pack(_VERSION, kind, sequence, timestamp, ssrc)


class Reception:
    """Counts of one incoming source: what arrived, what is missing, how evenly it comes.

    RFC 3550 appendix A.1, A.3 and A.8, without the probation: only authenticated packets come here.
    """

    __slots__ = (
        "_arrived",
        "_base",
        "_cycles",
        "_highest",
        "_restart",
        "_timestamp",
        "jitter",
        "received",
    )

    def __init__(self) -> None:
        self._base = -1  # extended number of the first packet; -1 = none yet
        self._cycles = 0
        self._highest = 0
        self._restart = -1
        self._timestamp = 0  # of the highest, and its arrival in seconds
        self._arrived = 0.0
        self.received = 0
        self.jitter = 0.0  # ticks

    def add(self, sequence: int, timestamp: int, now: float) -> bool:
        """Count a packet that arrived at `now` seconds; whether it is newer than all before.

        A far jump is ignored once and believed when the next packet continues it (the sender
        restarted).
        """
        if self._base < 0 or sequence == self._restart:
            self._begin(sequence)
        else:
            ahead = (sequence - self._highest) & 0xFFFF
            if ahead == 0 or ahead > 0x10000 - _MAX_MISORDER:
                self.received += 1
                return False
            if ahead >= _MAX_DROPOUT:
                self._restart = (sequence + 1) & 0xFFFF
                return False
            if sequence < self._highest:
                self._cycles += 0x10000
            self._highest, self._restart = sequence, -1
            self._measure(ahead, timestamp, now)
        self.received += 1
        self._timestamp, self._arrived = timestamp, now
        return True

    def _begin(self, sequence: int) -> None:
        self._cycles, self._highest, self._base = 0, sequence, sequence
        self._restart, self.received = -1, 0

    def _measure(self, ahead: int, timestamp: int, now: float) -> None:
        """Jitter, RFC 3550 section 6.4.1, without pauses: what ends one comes when it pleases."""
        ticks = (timestamp - self._timestamp) & 0xFFFFFFFF
        if ticks > ahead * _MAX_PACKET:  # or the timestamps went back
            return
        difference = abs((now - self._arrived) * CLOCK_RATE - ticks)
        if difference < CLOCK_RATE:  # else: a pause without timestamps
            self.jitter += (difference - self.jitter) / 16

    @property
    def highest(self) -> int:
        """Extended highest sequence number, 32 bits."""
        return (self._cycles + self._highest) & 0xFFFFFFFF

    @property
    def expected(self) -> int:
        return 0 if self._base < 0 else self._cycles + self._highest - self._base + 1

    @property
    def lost(self) -> int:
        """Packets missing so far; negative when duplicates arrived."""
        return self.expected - self.received
