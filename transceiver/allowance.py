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
        self._left = min(self._burst, self._left + (now - self._seen) * self._rate)
        self._seen = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
