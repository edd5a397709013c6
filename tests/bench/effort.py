"""How much trouble a run takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    pairs: int = 7  # in turn, for a ratio that has a target
    side_pairs: int = 3  # for one that has none
    rounds: int = 7  # of test runs


FULL = Effort()
QUICK = Effort(pairs=1, side_pairs=1, rounds=2)
