"""Whether a series of samples is flat. Pure.

After the warm-up, a line is fitted through all samples, so that one busy moment does not decide,
and the median of the last fifth is compared with that of the first: both may rise by the bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median

WARM_UP = 0.25  # of the samples
_EDGE = 0.2  # of those after it, at either end
_LEAST = 5  # samples after the warm-up

Series = Sequence[tuple[float, float]]  # seconds, value


@dataclass(frozen=True)
class Bound:
    """What a series may rise by in all: a share of its beginning, and this much in any case."""

    share: float
    least: float

    def of(self, start: float) -> float:
        return max(self.share * start, self.least)


@dataclass(frozen=True)
class Trend:
    """`slope` per hour; `rise` is the greater of the line's and the medians'."""

    start: float
    end: float
    slope: float
    rise: float
    bound: float

    @property
    def flat(self) -> bool:
        return self.rise <= self.bound


def trend(series: Series, bound: Bound) -> Trend:
    """Raises `ValueError` for fewer than five samples after the warm-up."""
    after = series[int(len(series) * WARM_UP) :]
    if len(after) < _LEAST:
        raise ValueError(f"{len(after)} samples after the warm-up; at least {_LEAST} are needed")
    edge = max(1, int(len(after) * _EDGE))
    start = median(value for _, value in after[:edge])
    end = median(value for _, value in after[-edge:])
    slope = linear_regression(*zip(*after, strict=True)).slope
    rise = max(end - start, slope * (after[-1][0] - after[0][0]))
    return Trend(start, end, slope * 3600, rise, bound.of(start))
