"""The sink's histogram of delays: 32 steps per octave, so a step is 3 % wide. Pure."""

from collections.abc import Sequence

STEPS = 1312
_PER_OCTAVE = 32


def lower_edge(step: int) -> int:
    """The least delay, in ns, that falls into `step`."""
    octave, rest = divmod(step, _PER_OCTAVE)
    return rest if octave == 0 else (_PER_OCTAVE + rest) << (octave - 1)


def percentile(counts: Sequence[int], percent: float) -> float:
    """The delay in ns that `percent` of the probes did not exceed; straight within a step.

    Raises `ValueError` if nothing was counted.
    """
    total = sum(counts)
    if not total:
        raise ValueError("no probe arrived")
    wanted = total * percent / 100
    below = 0
    for step, count in enumerate(counts):
        if count and below + count >= wanted:
            low, high = lower_edge(step), lower_edge(step + 1)
            return low + (high - low) * (wanted - below) / count
        below += count
    raise AssertionError("unreachable: the last step has the last probe")
