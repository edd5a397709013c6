"""The media of a lean call: speech out as RTP, an account of what comes back.

Pure. Packets here are RTP in the clear; SRTP is the caller's.
"""

import struct
from collections.abc import Sequence
from typing import Any

from tests.clients.ledger import Ledger
from tests.clients.opus_source import FRAME

_RTP = struct.Struct("!BBHII")
_REPORT_BLOCKS_AT = {200: 28, 201: 8}  # bytes, in a sender and in a receiver report
_REPORT_BLOCK = 24


class SpeechStream:
    """One source of speech and its echo. `first_sequence` and the rest should be random."""

    def __init__(
        self,
        payloads: Sequence[bytes],
        ssrc: int,
        *,
        first_sequence: int = 0,
        first_timestamp: int = 0,
        begin_at: int = 0,
    ) -> None:
        self.ssrc = ssrc
        self.payload_type = 111
        self.sent = 0
        self.down = Ledger()  # by the server's sequence numbers
        self.echo = Ledger()  # the same packets, numbered as we sent their payloads
        self._payloads = payloads
        self._sequence = first_sequence
        self._timestamp = first_timestamp
        self._at = begin_at
        self._sent_as: dict[bytes, int] = {}  # payload: the number it went under last
        self._reported_lost: int | None = None

    def next_packet(self) -> bytes:
        """The next 20 ms."""
        payload = self._payloads[self._at]
        header = _RTP.pack(0x80, self.payload_type, self._sequence, self._timestamp, self.ssrc)
        self._sent_as[payload] = self._sequence
        self._at = (self._at + 1) % len(self._payloads)
        self._sequence = (self._sequence + 1) & 0xFFFF
        self._timestamp = (self._timestamp + FRAME) & 0xFFFFFFFF
        self.sent += 1
        return header + payload

    def receive(self, packet: bytes, now: float) -> None:
        """Book a whole RTP packet."""
        first, _, sequence, _, _ = _RTP.unpack_from(packet)
        self.down.receive(sequence, now)
        at = _RTP.size + 4 * (first & 15)
        if first & 0x10:  # header extension, RFC 3550 section 5.3.1
            at += 4 + 4 * int.from_bytes(packet[at + 2 : at + 4], "big")
        number = self._sent_as.get(packet[at:])
        if number is not None:
            self.echo.receive(number, now)

    def receive_report(self, packet: bytes) -> None:
        """Book the first block of an RTCP report: cumulative loss, RFC 3550 section 6.4.1."""
        at = _REPORT_BLOCKS_AT.get(packet[1])
        if at is not None and packet[0] & 31 and len(packet) >= at + _REPORT_BLOCK:
            self._reported_lost = int.from_bytes(packet[at + 5 : at + 8], "big")

    def report(self, now: float) -> dict[str, Any]:
        """`lost.up` is right once nothing is under way, if each packet is answered by one."""
        gap, since_mark = self.down.gaps_until(now)
        return {
            "sent": self.sent,
            "received": self.down.received,
            "lost": {
                "down": self.down.lost,
                "up": self.sent - self.down.received - self.down.lost,
                "up_reported": self._reported_lost,
            },
            "echoed": {"received": self.echo.received, "lost": self.echo.lost},
            "duplicates": self.down.duplicates,
            "reordered": self.down.reordered,
            "max_gap_ms": round(gap * 1e3, 1),
            "gap_ms": round(since_mark * 1e3, 1),
        }
