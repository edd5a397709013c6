"""The most calls that hold, by stepping to both sides of the limit and halving between. Pure: who
tries a number is an argument."""

from collections.abc import Callable

RESOLUTION = 0.03  # of the number of calls
STRIDE = 1.15  # of the steps towards the limit


def most(
    holds: Callable[[int], bool], guess: int, ceiling: int, resolution: float = RESOLUTION
) -> int:
    """The largest number that held; 0 if not even one call did, never above `ceiling`."""
    low, high = _bracket(holds, max(1, min(guess, ceiling)), ceiling)
    while high - low > max(1, int(resolution * low)):
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def _bracket(holds: Callable[[int], bool], at: int, ceiling: int) -> tuple[int, int]:
    """One number that held (or 0), and one above it that did not (or is above the ceiling)."""
    if holds(at):
        low = at
        while low < ceiling:
            at = min(ceiling, max(low + 1, round(low * STRIDE)))
            if not holds(at):
                return low, at
            low = at
        return low, ceiling + 1
    high = at
    while high > 1:
        at = min(high - 1, round(high / STRIDE))
        if holds(at):
            return at, high
        high = at
    return 0, high
