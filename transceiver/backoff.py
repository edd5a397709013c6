"""How long to wait before something that failed is started again. Pure."""

FIRST_S = 1.0
LONGEST_S = 30.0
GOOD_S = 60.0  # who lived so long did not fail at its start


class Backoff:
    """A second, then twice as long after each failure in a row."""

    def __init__(self) -> None:
        self.failures = 0  # in a row

    def after(self, lived_s: float) -> float:
        """Seconds to wait, after a life of `lived_s`."""
        self.failures = 1 if lived_s >= GOOD_S else self.failures + 1
        return min(LONGEST_S, FIRST_S * 2.0 ** min(self.failures - 1, 10))
