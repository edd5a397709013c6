"""How much trouble a run takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int = 3  # in turn, for a ratio that has a target
    side_rounds: int = 1  # for what is only shown
    talk_s: float = 2.6  # of one step of a search
    fixed_s: float = 4.0  # of talk at a fixed number of calls
    held: int = 30  # calls that are held for memory
    set_ups: int = 200  # of ours, in one go
    stock_set_ups: int = 40
    churn: int = 1000  # calls that come and go
    at_once: int = 200
    most: int = 4000  # calls that a search may come to


FULL = Effort()
QUICK = Effort(
    rounds=1,
    talk_s=1.2,
    fixed_s=1.2,
    held=6,
    set_ups=10,
    stock_set_ups=6,
    churn=40,
    at_once=10,
    most=12,
)
