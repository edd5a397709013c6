"""Is what we hear the agent's own voice, come back through the caller's loudspeaker?

Pure. What was played and what is heard is kept for some seconds, and looked at only when somebody
seems to speak while, or shortly after, the agent does:

- The way of the echo, its delay and loudness, is learnt by correlation over a second of sound. It
  holds for the rest of the call, and is learnt anew as it changes.
- Once it is known, a frame no louder than the echo expected at that moment is echo. Reverberation
  counts as expected, a person of ordinary level is far above it.
- What is louder is echo all the same if it correlates with what was played: the way has changed.
- While the way is unknown, correlation decides: at once of what is loud and strange, else after 0.1
  to 0.2 s of sound.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from transceiver.turns.vad import RATE

LONGEST_DELAY_S = 0.9  # network both ways, the client's buffer, the room
TAIL_S = 1.0  # reverberation after that
LOUDER_DB = 6.0  # than expected is no echo
ROOM = 0.1  # of the time the room is no louder than its own noise
REVERBERATION_DB_S = 60.0  # the loudness expected falls no faster
ALIKE = 0.75  # correlation over `_RECENT` that makes louder sound an echo
SURE = 0.4  # correlation over `_LONG` that teaches the way ...
SURER = 0.6  # ... and if it holds but a syllable
LOUDEST = 0.5  # of power: what is louder than that is no echo

_RATE = RATE // 2  # all below is at 8 kHz, where speech has its energy; counts are samples of it
_DELAYS = round(LONGEST_DELAY_S * _RATE)
_TAIL = round(TAIL_S * _RATE)
_LONG = _RATE  # to learn from
_RECENT = _RATE // 4
_HOP = _RATE * 16 // 1000  # of loudness
_EARLY = 4 * _HOP  # a delay may shrink so much before it is learnt anew
_AGAIN = _RATE // 4  # from one lesson to the next
_FIRST = _RATE * 96 // 1000  # of doubt: before, correlation alone says little
_SECOND = _RATE * 192 // 1000  # of doubt: from here on it says all
_NEAR = 0.04  # of power, against the loudest played: before the first, no echo if so loud ...
_STRANGE = 0.45  # ... and so unlike
_UNLIKE = 0.27  # from the first on: certainly no echo
_LIKE = 0.35  # from the second on: echo
_FAINT = 0.0025  # of power: an echo that can be no louder is none
_MOMENT = _RATE * 128 // 1000  # just now: what is asked about
_AUDIBLE = 300.0**2  # of a mean square: words, not their ends
_TINY = 10.0**2  # of a mean square: below, sound is silence

Row = npt.NDArray[np.float32]


class Way(NamedTuple):
    """Of the echo."""

    delay: int | None  # None: no echo was found, `gain` is the most that it can be
    gain: float  # of power, heard against played


class _Match(NamedTuple):
    likeness: float  # 0 of what is too loud
    delay: int
    gain: float


class Guard:
    """One call's: `played` and `heard` in the order in which they happen."""

    def __init__(self) -> None:
        self._played = _Line(2 * _RATE + _DELAYS + _TAIL, aside=_RATE * 60 // 1000)
        self._heard = _Line(2 * _RATE, aside=_RATE // 2)
        self._way: Way | None = None
        self._learnt = -_AGAIN  # when
        self._listened = 0  # for silence, when
        self._asked = 0  # when, last
        self._doubt = 0  # asked about in a row

    def played(self, samples: bytes, now: float) -> None:
        """These left for the client: 16-bit mono native samples at 16 kHz, as they are put on the
        wire. Silence between replies need not be told."""
        self._played.add(samples, round(now * _RATE) + len(samples) // 4)

    def heard(self, samples: bytes, now: float) -> None:
        """These came from the client, their last one at `now`. A `Detector` says it."""
        self._heard.add(samples, round(now * _RATE))
        end = self._heard.end
        if self._recent(end) and end - self._listened >= 2 * _AGAIN:
            self._listened = end
            self._learn_silence(end)

    def echoes(self) -> bool | None:
        """Whether the last frame heard is our echo and nothing but; None: too early to tell, ask
        about the next. False, and free of charge, when nothing was played lately."""
        now, self._asked, before = self._heard.end, self._heard.end, self._asked
        if not self._recent(now):
            return False
        step = self._heard.step
        self._doubt = self._doubt + step if now - before <= 2 * step else step
        if now - self._learnt >= _AGAIN:
            self._learnt = now
            self._learn(now)
        if self._way:
            if self._louder(now, self._way):
                return self._likeness(now) >= ALIKE
            if self._way.delay is not None:
                return True
        likeness = self._likeness(now)
        if self._doubt < _FIRST:
            return None if likeness >= _STRANGE or not self._near(now) else False
        return likeness >= (_UNLIKE if self._doubt < _SECOND else _LIKE)

    def _near(self, now: int) -> bool:
        """Whether the last frame is louder than the echo of the loudest word would be."""
        played = self._played.take(now - _DELAYS, now)
        frame = self._heard.take(now - self._heard.step, now)
        return float(np.mean(frame**2)) > max(_NEAR * float(np.max(_loudness(played))), _TINY)

    def _recent(self, now: int) -> bool:
        """Whether what was played may still be heard."""
        return bool(self._played) and now - self._played.end <= _DELAYS + _TAIL

    def _louder(self, now: int, way: Way) -> bool:
        """Whether the last frame is louder than its echo can be."""
        late = way.delay if way.delay is not None else _DELAYS
        early = max(0, late - _EARLY) if way.delay is not None else 0
        played = self._played.take(now - late - _TAIL, now - early)
        ages = np.arange(len(played) // _HOP)[::-1] - (late - early) // _HOP
        fallen = REVERBERATION_DB_S * _HOP / _RATE * np.maximum(ages, 0)
        expected = way.gain * np.max(_loudness(played) * 10 ** (-fallen / 10))
        heard = self._heard.take(now - 2 * _RATE, now)
        loudness = _loudness(heard)
        expected += np.quantile(loudness[loudness > 0], ROOM) if loudness.any() else 0.0
        frame = heard[-self._heard.step :]
        return float(np.mean(frame**2)) > 10 ** (LOUDER_DB / 10) * max(float(expected), _TINY)

    def _likeness(self, now: int) -> float:
        return self._match(now, _RECENT).likeness

    def _learn(self, now: int) -> None:
        found = self._match(now, _LONG)
        if found.likeness >= (SURE if _lasts(self._heard.take(now - _LONG, now)) else SURER):
            self._way = Way(found.delay, found.gain)
        else:
            self._learn_silence(now)

    def _match(self, now: int, size: int) -> _Match:
        """Of the last `size` samples heard, and what of the played is most like them."""
        heard = self._heard.take(now - size, now)
        played = self._played.take(now - size - _DELAYS, now)
        likeness, at = match(heard, played)
        gain = float(np.mean(heard**2) / (np.mean(played[at : at + size] ** 2) + 1))
        return _Match(likeness if gain < LOUDEST else 0.0, _DELAYS - at, gain)

    def _learn_silence(self, now: int) -> None:
        """The echo of what was played two seconds ago has come back by now, whatever its way: it
        cannot be louder than the loudest that was heard since. A microphone that is off tells
        nothing."""
        heard = _loudness(self._heard.take(now - 2 * _RATE, now - _MOMENT))
        played = _loudness(self._played.take(now - 2 * _RATE, now - _MOMENT - _DELAYS))
        if not heard.all() or np.max(played) < _AUDIBLE:
            return
        gain = float(np.max(heard) / np.max(played))
        if gain < (self._way.gain / 10 if self._way else _FAINT):
            self._way = Way(None, gain)


class _Line:
    """The newest sound of one direction, by one clock. Sounds follow each other without a gap
    while that agrees with the clock."""

    def __init__(self, kept: int, aside: int) -> None:
        """`aside`: so far off, and there was a gap."""
        self.end = 0
        self.step = 0  # of the last piece
        self._kept = kept
        self._aside = aside
        self._pieces: deque[tuple[int, Row]] = deque()  # each with its begin

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, samples: bytes, end: int) -> None:
        """`end` by the clock. 16 kHz in, 8 kHz kept."""
        pairs = np.frombuffer(samples, np.int16, len(samples) // 4 * 2).reshape(-1, 2)
        piece = pairs.mean(1, dtype=np.float32)
        self.step = len(piece)
        self.end += self.step
        if abs(self.end - end) > self._aside:
            self.end = end
        self._pieces.append((self.end - self.step, piece))
        while self._pieces[0][0] < self.end - self._kept - self.step:
            self._pieces.popleft()

    def take(self, begin: int, end: int) -> Row:
        """From `begin` until `end`; zeros where there is nothing."""
        row = np.zeros(end - begin, np.float32)
        for at, piece in self._pieces:
            first, last = max(at, begin), min(at + len(piece), end)
            if first < last:
                row[first - begin : last - begin] = piece[first - at : last - at]
        return row


def match(heard: Row, played: Row) -> tuple[float, int]:
    """How well `heard` matches the piece of the longer `played` that it matches best: normalised
    correlation without its sign, and where that piece begins."""
    size = 1 << (len(played) - 1).bit_length()
    spectrum = np.fft.rfft(played, size) * np.conj(np.fft.rfft(heard, size))
    products = np.fft.irfft(spectrum, size)[: len(played) - len(heard) + 1]
    sums = np.concatenate([[0.0], np.cumsum(played.astype(np.float64) ** 2)])
    energies = sums[len(heard) :] - sums[: len(sums) - len(heard)]
    floor = _TINY * len(heard)
    likeness = np.abs(products) / np.sqrt((energies + floor) * (float(heard @ heard) + floor))
    best = int(np.argmax(likeness))
    return float(likeness[best]), best


def _lasts(row: Row) -> bool:
    """Whether its power is spread over 0.1 s at least."""
    powers = _loudness(row)
    return float(np.sum(powers)) ** 2 * _HOP > 0.1 * _RATE * float(powers @ powers)


def _loudness(row: Row) -> Row:
    """Mean square of each hop; a rest at the begin is left out."""
    hops = row[len(row) % _HOP :].reshape(-1, _HOP)
    return np.asarray(np.mean(hops**2, axis=1))
