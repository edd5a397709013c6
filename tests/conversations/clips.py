"""Twenty clips of a speaker who pauses: for 0.3 to 1.5 s, in the midst of what he has to say.

Real speech is cut at its own quiet places; between the phrases lies the recording's own room, for
as long as the clip says. What a clip states of itself is where sound that a person would call
speech begins and ends, so a listener that takes a pause for an end can be convicted.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

from tests.lab.speech import OTHER, SPOKEN

RATE = 16_000  # Hz, the recordings' own
COUNT = 20
SHORTEST_S, LONGEST_S = 0.3, 1.5  # of the pauses
LEAD_S = 0.6  # of room before the first phrase
AFTER_S = 3.0  # of room behind the last: the longest silence asked for, and an answer

Samples = npt.NDArray[np.int16]

_HOP = RATE // 100
_QUIET_DB = -50.0  # of full scale, in 10 ms: the room is at -65, a whispered end at -45
_BREAK = 10  # quiet hops between two phrases
_PHRASE_S = (0.4, 3.6)  # what is shorter is a breath, what is longer needs no pause
_EDGE = RATE // 200  # faded
_SEAM = RATE // 50  # of room over room


@dataclass(frozen=True)
class Span:
    """Seconds from the begin of a clip."""

    start: float
    end: float


@dataclass(frozen=True)
class Clip:
    name: str
    samples: Samples  # 16 kHz mono
    speech: tuple[Span, ...]  # phrases; room before, between and after

    @property
    def pauses(self) -> tuple[Span, ...]:
        following = zip(self.speech, self.speech[1:], strict=False)
        return tuple(Span(one.end, next_.start) for one, next_ in following)


@cache
def clips() -> tuple[Clip, ...]:
    """The same ones every time. A third of them has two pauses."""
    said = [*phrases(SPOKEN), *phrases(OTHER)]
    room = _room(read(SPOKEN))
    made = []
    for number, seconds in enumerate(np.linspace(SHORTEST_S, LONGEST_S, COUNT)):
        count = 3 if number % 3 == 2 else 2
        chosen = [said[(number * 2 + n) % len(said)] for n in range(count)]
        pauses = [float(seconds), LONGEST_S + SHORTEST_S - float(seconds)][: count - 1]
        made.append(_join(f"clip-{number:02}", chosen, pauses, room))
    return tuple(made)


@cache
def phrases(path: Path) -> tuple[Samples, ...]:
    """Of a recording: whatever stands between two breaks, if it is long enough to be something
    said."""
    recording = read(path)
    loud = np.flatnonzero(_loudness_db(recording) > _QUIET_DB)
    runs = np.split(loud, np.flatnonzero(np.diff(loud) > _BREAK) + 1)
    cut = [recording[run[0] * _HOP : (run[-1] + 1) * _HOP] for run in runs]
    return tuple(each for each in cut if _PHRASE_S[0] <= len(each) / RATE <= _PHRASE_S[1])


@cache
def read(path: Path) -> Samples:
    """A recording of `tests/vectors/speech` at its own rate, 16 kHz."""
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray().ravel() for frame in container.decode(audio=0)]
    return np.concatenate(frames).astype(np.int16)


def _join(name: str, phrases: list[Samples], pauses: list[float], room: Samples) -> Clip:
    """Room throughout, and the phrases in it."""
    starts, at = [], LEAD_S
    for phrase, pause in zip(phrases, [*pauses, AFTER_S], strict=True):
        starts.append(round(at * RATE))
        at = starts[-1] / RATE + len(phrase) / RATE + pause
    samples = np.resize(room, round(at * RATE)).astype(np.float64)
    for start, phrase in zip(starts, phrases, strict=True):
        samples[start : start + len(phrase)] = _faded(phrase)
    spans = (
        Span(start / RATE, (start + len(phrase)) / RATE)
        for start, phrase in zip(starts, phrases, strict=True)
    )
    return Clip(name, np.round(samples).astype(np.int16), tuple(spans))


def _room(recording: Samples) -> Samples:
    """The longest quiet piece, so that it can be repeated without a click: its end runs into its
    begin."""
    quiet = np.flatnonzero((loudness := _loudness_db(recording)) <= _QUIET_DB)
    runs = np.split(quiet, np.flatnonzero(np.diff(quiet) > 1) + 1)
    alive = [run[2:-2] for run in runs if len(run) > 10 and loudness[run[2:-2]].min() > -90]
    longest = max(alive, key=len)
    piece = recording[longest[0] * _HOP : (longest[-1] + 1) * _HOP].astype(np.float64)
    fade = np.sqrt(np.linspace(0, 1, _SEAM))
    head = piece[:_SEAM] * fade + piece[-_SEAM:] * fade[::-1]
    return np.round(np.concatenate([head, piece[_SEAM:-_SEAM]])).astype(np.int16)


def _faded(phrase: Samples) -> npt.NDArray[np.float64]:
    shape = np.ones(len(phrase))
    shape[:_EDGE] = np.linspace(0, 1, _EDGE)
    shape[-_EDGE:] = np.linspace(1, 0, _EDGE)
    return phrase * shape


def _loudness_db(samples: Samples) -> npt.NDArray[np.float64]:
    hops = samples[: len(samples) // _HOP * _HOP].reshape(-1, _HOP) / 32768
    return np.asarray(10 * np.log10(np.mean(hops**2, axis=1) + 1e-12))
