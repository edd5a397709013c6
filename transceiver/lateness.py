"""How late the process does its work: quantiles over the last five seconds. Pure.

What is late is a slot of the pacer when it is sent, and a datagram when it is read.
"""

from array import array

WINDOW_S = 5  # seconds that quantiles look back, and the one that is not over
LIMIT_MS = 250  # later ones count as this late


class Lateness:
    """A histogram of milliseconds for each of the last seconds, and one of all of them."""

    def __init__(self) -> None:
        self._seconds = [_empty() for _ in range(WINDOW_S + 1)]
        self._second = 0  # the present one
        self._present = self._seconds[0]
        self._all = _empty()
        self._count = 0

    def add(self, late: float, now: float, count: int = 1) -> None:
        """`count` things were `late` seconds late; negative is punctual."""
        if int(now) != self._second:
            self._go_on(int(now))
        bucket = int(late * 1000)
        bucket = 0 if bucket < 0 else bucket if bucket < LIMIT_MS else LIMIT_MS
        self._present[bucket] += count
        self._all[bucket] += count
        self._count += count

    def quantile(self, share: float, now: float) -> float:
        """Seconds that `share` of all were not later than, in whole milliseconds up; 0 if none."""
        self._go_on(int(now))
        wanted = share * self._count
        seen = 0
        for bucket, total in enumerate(self._all):  # as a rule one of the first
            seen += total
            if total and seen >= wanted:
                return (bucket + 1) / 1000
        return 0.0

    def _go_on(self, second: int) -> None:
        """Forget what is too old."""
        for passed in range(max(self._second + 1, second - WINDOW_S), second + 1):
            slot = passed % len(self._seconds)
            for bucket, count in enumerate(self._seconds[slot]):
                if count:
                    self._all[bucket] -= count
                    self._count -= count
            self._seconds[slot] = _empty()
        self._second = max(self._second, second)
        self._present = self._seconds[self._second % len(self._seconds)]


def _empty() -> "array[int]":
    return array("Q", bytes(8 * (LIMIT_MS + 1)))
