"""How much trouble a run takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    calls: int = 50  # of each client at each path length
    step_s: float = 5.0  # of offers at one rate
    half_s: float = 15.0  # at half of the best
    rates: tuple[int, ...] = (700, 850, 1000, 1150, 1300, 1450, 1600, 1800, 2000, 2300, 2600)
    abandoned: int = 10_000
    malformed: int = 1500  # offers
    examples: int = 60  # made up, of each operation


FULL = Effort()
QUICK = Effort(
    calls=4, step_s=1.0, half_s=1.0, rates=(100, 200), abandoned=300, malformed=200, examples=5
)
