"""DTLS datagrams: cutting OpenSSL's output into them, and repeating our last handshake flight.

Pure. OpenSSL writes whole records into a memory BIO without datagram borders, and its
retransmission timer begins at one second and cannot be set from Python; browsers begin at 50 ms.
"""

import math

DATAGRAM_SIZE = 1200  # bytes; fits every path of WebRTC, also with 38 bytes before it
REPLAY_AFTER = (0.1, 0.2, 0.4, 0.8)  # seconds after a flight was written; then OpenSSL's own timer

_RECORD_HEADER = 13  # RFC 6347 section 4.1
_LENGTH_AT = 11


def datagrams(records: bytes, size: int = DATAGRAM_SIZE) -> list[bytes]:
    """Pack a run of DTLS 1.2 records into datagrams of at most `size` bytes, in order.

    A record is never cut: one that is larger travels alone.
    """
    packed: list[bytes] = []
    start = at = 0
    while at < len(records):
        end = (
            at
            + _RECORD_HEADER
            + int.from_bytes(records[at + _LENGTH_AT : at + _RECORD_HEADER], "big")
        )
        if end - start > size and at > start:
            packed.append(records[start:at])
            start = at
        at = end
    if start < len(records):
        packed.append(records[start:])
    return packed


class LastFlight:
    """The flight that the peer may not have got: to be sent again, byte for byte.

    The peer drops what it has already by its replay window (RFC 6347 section 4.1.2.6).
    """

    def __init__(self) -> None:
        self._datagrams: list[bytes] = []
        self._written = 0.0
        self._replays = len(REPLAY_AFTER)

    @property
    def deadline(self) -> float:
        """When something is due; math.inf = never."""
        if self._replays >= len(REPLAY_AFTER):
            return math.inf
        return self._written + REPLAY_AFTER[self._replays]

    def wrote(self, flight: list[bytes], now: float) -> None:
        """Something newer was written: it replaces what we had."""
        self._datagrams, self._written, self._replays = flight, now, 0

    def arrived(self) -> None:
        """The peer has shown that it needs no replay."""
        self._datagrams, self._replays = [], len(REPLAY_AFTER)

    def due(self, now: float) -> list[bytes]:
        """Datagrams to send again now."""
        if now < self.deadline:
            return []
        self._replays += 1
        return self._datagrams
