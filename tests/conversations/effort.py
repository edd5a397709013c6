"""How much trouble a run takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    conversations: int = 100
    interruptions: int = 15  # of each of 4 callers, to be timed
    cuts: int = 4  # of each of 6 callers, for each depth of an ear's buffer
    appends_s: float = 20.0  # of talk
    outages_s: tuple[float, ...] = (0.5, 3.0, 8.0)
    overfills: int = 4  # replies of 120 s in one go
    capacity_s: float = 7.0  # of one step of a search
    most: int = 1000  # calls that a search may come to


FULL = Effort()
QUICK = Effort(
    conversations=24,
    interruptions=2,
    cuts=1,
    appends_s=4.0,
    outages_s=(0.5,),
    overfills=1,
    capacity_s=4.0,
    most=4,
)
