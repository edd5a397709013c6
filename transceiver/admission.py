"""Whether this process takes one more call. Pure: counts and a lateness in, a refusal out.

A call costs a codec's work each 20 ms, so what a core can carry is known before the first call
(`capacity_for`); that it carries too much all the same (another program runs there) is seen from
work that is done late. Offers whose client never comes cost memory and a place, hence bounds of
their own.
"""

import enum
from collections import Counter
from collections.abc import Callable

MAX_HALF_OPEN = 1000  # calls of a process that are not connected yet
MAX_HALF_OPEN_OF_SUBJECT = 20

# A core of speed 1 decodes and encodes a second of speech in this time, and carries this many
# calls with more than half of it to spare, for transport and for other work.
REFERENCE_S = 0.012
CALLS_OF_REFERENCE = 30


class Refusal(enum.StrEnum):
    """Why a call is not taken; also the `reason` label of a counter and the code of an answer."""

    DRAINING = "draining"
    FULL = "overloaded"
    LATENESS = "lateness"
    HALF_OPEN = "half_open"
    SUBJECT = "too_many_half_open"


class Refused(Exception):
    def __init__(self, reason: Refusal, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Admission:
    """`lateness` gives the seconds by which 99 of 100 deadlines are kept."""

    def __init__(
        self,
        capacity: int,
        lateness: Callable[[], float] = lambda: 0.0,
        max_lateness_s: float = 0.02,
    ) -> None:
        self.capacity = capacity
        self.draining = False
        self._lateness = lateness
        self._max_lateness_s = max_lateness_s

    def close(self) -> None:
        """Take no more calls, for good."""
        self.draining = True

    def admit(self, live: int, half_open: Counter[str], subject: str) -> None:
        """Raises `Refused`. `half_open`: calls that are not connected, by subject."""
        waiting = half_open.total()
        refusal = self.closed(live)
        if refusal is not None:
            raise Refused(refusal, self._detail(refusal, live))
        if waiting >= MAX_HALF_OPEN:
            raise Refused(Refusal.HALF_OPEN, f"{waiting} calls wait for their client")
        if subject and half_open[subject] >= MAX_HALF_OPEN_OF_SUBJECT:
            detail = f"{half_open[subject]} calls of this subject wait for their client"
            raise Refused(Refusal.SUBJECT, detail)

    def closed(self, live: int) -> Refusal | None:
        """Why nobody's call is taken now, with `live` calls here."""
        if self.draining:
            return Refusal.DRAINING
        if live >= self.capacity:
            return Refusal.FULL
        if self._lateness() > self._max_lateness_s:
            return Refusal.LATENESS
        return None

    def _detail(self, refusal: Refusal, live: int) -> str:
        match refusal:
            case Refusal.FULL:
                return f"{live} calls of {self.capacity}"
            case Refusal.LATENESS:
                return f"work is done {self._lateness() * 1000:.0f} ms late"
        return "this process ends when its last call has ended"


def capacity_for(codec_s: float) -> int:
    """Calls for a core that decodes and encodes a second of speech in `codec_s`."""
    return max(1, round(CALLS_OF_REFERENCE * REFERENCE_S / codec_s))
