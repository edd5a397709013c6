"""The highest rate without loss, by halving (RFC 2544 section 26.1, with trials of a fraction of a
second). Pure: who offers the rates is an argument."""

from collections.abc import Callable
from dataclasses import dataclass

LOSSLESS = 1e-5  # share of frames that counts as none
RESOLUTION = 0.02  # of the rate
ATTEMPTS = 3  # a rate that passes once passes: a busy machine loses what the relay does not


@dataclass(frozen=True, slots=True)
class Offer:
    """What came of one trial."""

    rate: float  # frames offered a second
    loss: float  # share


def highest_lossless(offer: Callable[[float], Offer], guess: float) -> float:
    """Offered frames a second at which nothing is lost; 0.0 if every rate down to 1 % of `guess`
    loses. `guess`: about what gets through when too much is offered."""
    low, high, best = guess / 100, guess * 1.3, 0.0
    while high - low > RESOLUTION * high:
        rate = (low + high) / 2
        passed = _first_passed(offer, rate)
        if passed is None:
            high = rate
        else:
            best, low = max(best, passed), rate
    return best


def _first_passed(offer: Callable[[float], Offer], rate: float) -> float | None:
    for _ in range(ATTEMPTS):
        found = offer(rate)
        if found.loss <= LOSSLESS:
            return found.rate
    return None
