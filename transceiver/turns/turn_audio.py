"""The sound of the turn that is going on, and of the moments before it.

Pure. While no turn is open only as much is kept as a prefix may reach back. An open one is kept
from its begin until `release`, so one that is resumed simply goes on; above 60 s the oldest goes.
"""

from transceiver.turns.settings import MAX_PREFIX_MS
from transceiver.turns.vad import RATE

NOTICE_MS = 500  # that speech is noticed after it began, at most
LONGEST_MS = 60_000

_BYTES_PER_MS = RATE // 1000 * 2
_KEPT = (MAX_PREFIX_MS + NOTICE_MS) * _BYTES_PER_MS  # outside of turns
_LONGEST = LONGEST_MS * _BYTES_PER_MS
_SLACK = _KEPT // 4  # trimmed at once: each trim moves what stays


class TurnAudio:
    """One call's. Positions are those of a `Detector` that hears the same sound."""

    def __init__(self) -> None:
        self._sound = bytearray()
        self._end = 0  # bytes added so far
        self._begin: int | None = None  # of the open turn, as `_end`

    @property
    def position_ms(self) -> int:
        """Of all sound added so far."""
        return self._end // _BYTES_PER_MS

    @property
    def open(self) -> bool:
        return self._begin is not None

    def add(self, samples: bytes) -> None:
        """Sound that follows the last: 16-bit mono native samples at 16 kHz."""
        self._sound += samples
        self._end += len(samples)
        start = self._end - len(self._sound)
        if self._begin is None:
            wanted = max(start, self._end - _KEPT)
        else:
            self._begin = wanted = max(self._begin, start, self._end - _LONGEST)
        if wanted - start > _SLACK:
            del self._sound[: wanted - start]

    def begin(self, start_ms: int) -> None:
        """A turn begins at `start_ms`, or goes on if one is open: then its begin stays."""
        if self._begin is None:
            kept = self._end - len(self._sound)
            self._begin = min(max(start_ms * _BYTES_PER_MS, kept), self._end)

    def samples(self, end_ms: int | None = None) -> bytes:
        """The open turn's sound from its begin to `end_ms` (None: all so far); may be asked again.
        Nothing when no turn is open."""
        if self._begin is None:
            return b""
        kept = self._end - len(self._sound)
        end = self._end if end_ms is None else end_ms * _BYTES_PER_MS
        return bytes(self._sound[self._begin - kept : max(0, end - kept)])

    def release(self) -> None:
        """The turn is over for good, or none: nothing resumes it."""
        self._begin = None
