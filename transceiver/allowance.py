"""How much of a process one call may take: a token bucket. Pure."""


class Allowance:
    """`rate` a second in the long run, `burst` at once. `now` is in seconds."""

    __slots__ = ("_burst", "_left", "_rate", "_seen")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left = burst
        self._seen = 0.0

    def take(self, now: float) -> bool:
        """Take one; False if there is none left."""
        left = self._left + (now - self._seen) * self._rate
        if left > self._burst:
            left = self._burst
        self._seen = now
        self._left = left if left < 1.0 else left - 1.0
        return left >= 1.0
