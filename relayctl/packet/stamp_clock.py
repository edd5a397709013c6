"""The kernel's stamps of arrival, which are of the wall clock, in monotonic time. Pure.

The wall clock may be stepped. What lay in a socket just then was stamped by the clock before, and
would seem an hour old, and be dropped as stale: for a while after a step a stamp tells nothing.
"""

STEP_NS = 100_000_000  # between two looks; slewing stays below it for three minutes
DISTRUST_NS = 1_000_000_000  # what was stamped before a step has been read by then


class StampClock:
    """`look` before stamps are turned. All times are nanoseconds."""

    def __init__(self, wall: int, monotonic: int) -> None:
        self._offset = wall - monotonic
        self._now = monotonic
        self._distrusted_until = 0

    def look(self, wall: int, monotonic: int) -> None:
        """What both clocks say now."""
        offset = wall - monotonic
        if abs(offset - self._offset) > STEP_NS:
            self._distrusted_until = monotonic + DISTRUST_NS
        self._offset, self._now = offset, monotonic

    def monotonic(self, stamp: int) -> int:
        """When a datagram with this stamp came; now, while stamps tell nothing."""
        return self._now if self._now < self._distrusted_until else stamp - self._offset
