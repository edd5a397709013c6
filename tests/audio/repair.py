"""How good is what stands in for packets that were lost?

Pure. The same talk is heard twice, once without loss; the error of a repaired frame is the energy
of its difference to the frame without loss, against that of silence in its place: 0 = as if nothing
had been lost, 1 = as if nothing had been done, more = worse than silence.
"""

from collections.abc import Iterable

import numpy as np

from tests.clients.opus_source import FRAME
from tests.lab.ear import Row

ECHOED = 310  # samples by which the echo's coder shifts what its decoder gave
QUIET_RMS = 0.01  # of full scale; in a pause there is nothing to repair


def spoken_frames(lossless: Row, frames: Iterable[int], delay: int) -> list[int]:
    """Those of `frames` that hold speech. `delay`: samples by which the frame that the repairing
    decoder gave is heard later, 0 or `ECHOED`."""
    return [n for n in frames if _rms(_frame(lossless, n, delay)) >= QUIET_RMS]


def came_whole(came: Row, number: int, delay: int) -> bool:
    """Whether all of frame `number` arrived; what the way back lost is not the repair's fault."""
    piece = came[number * FRAME + delay : (number + 1) * FRAME + delay]
    return len(piece) == FRAME and bool(piece.all())


def error(lossless: Row, heard: Row, frames: Iterable[int], delay: int) -> float | None:
    """Of all these frames together; None for none."""
    frames = list(frames)
    if not frames:
        return None
    wrong = sum(
        float(np.sum((_frame(heard, n, delay) - _frame(lossless, n, delay)) ** 2)) for n in frames
    )
    silence = sum(float(np.sum(_frame(lossless, n, delay) ** 2)) for n in frames)
    return wrong / silence


def _frame(samples: Row, number: int, delay: int) -> Row:
    start = number * FRAME + delay
    piece = samples[start : start + FRAME]
    return np.concatenate([piece, np.zeros(FRAME - len(piece))])


def _rms(samples: Row) -> float:
    return float(np.sqrt(np.mean(samples**2)))
