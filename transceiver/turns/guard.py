"""Is what we hear the agent's own voice, come back through the caller's loudspeaker?

Pure. Looked at only while, or shortly after, the agent speaks. Echo has to pass both:

- Loudness. Whatever the delay of an echo, it is no louder than what was heard so long after each
  word of ours. Silence then rules a delay out, for long and whoever speaks later; with headphones
  that is all delays after a second of ours.
- Likeness. At a delay that is not ruled out, what is heard matches what was played. Chance makes a
  syllable of a person match somewhere, but rarely just there.

Once a long piece has matched, the caller has a loudspeaker, and we know how well its echo matches.
Only from then on what is too loud is echo all the same if it matches well: the way has changed.
"""

from collections import deque

import numpy as np
import numpy.typing as npt

from transceiver.turns.vad import RATE

LONGEST_DELAY_S = 0.9  # network both ways, the client's buffer, the room
TAIL_S = 1.0  # reverberation after that
REVERBERATION_DB_S = 60.0  # the loudness expected falls no faster
LOUDEST = 0.1  # of power: an echo has no more
LOUDER = 4.0  # times the power expected is no echo
FORGOTTEN_DB_S = 1.0  # while the agent speaks: so slowly what was ruled out may come true
ROOM = 0.1  # of the time the room is no louder than its own noise
ALIKE = 0.5  # correlation over `_RECENT` of an echo of which nothing is known,
USUAL = 0.7  # and of one that is known, of what it was before
CHANGED = 0.75  # of an echo by a new way
SURE = 0.5  # correlation over `_LONG` that proves a loudspeaker

_RATE = RATE // 2  # all below is at 8 kHz, where speech has its energy; counts are samples of it
_HOP = _RATE * 16 // 1000  # of loudness
_DELAYS = round(LONGEST_DELAY_S * _RATE) // _HOP  # in hops, as all that goes by delay
_TAIL = round(TAIL_S * _RATE) // _HOP  # hops
_BLOCK = 5  # hops of which the loudness is compared
_SWAY = 2  # hops by which a delay may be off
_LONG = _RATE
_RECENT = _RATE // 4
_AGAIN = _RATE // 4  # from one search for proof to the next
_LASTS = _RATE * 150 // 1000  # of a proof: a syllable is none
_DOUBT = _RATE * 144 // 1000  # of sound that is like echo: from here on it is
_AUDIBLE = 300.0**2  # of a mean square: words, not their ends
_TINY = 10.0**2  # of a mean square: below, sound is silence

Row = npt.NDArray[np.float32]
ByDelay = npt.NDArray[np.float64]


class Guard:
    """One call's: `played` and `heard` in the order in which they happen."""

    def __init__(self) -> None:
        self._played = _Line(2 * _RATE + (_DELAYS + _TAIL) * _HOP, aside=_RATE * 60 // 1000)
        self._heard = _Line(2 * _RATE, aside=_RATE // 2)
        self._gains = np.full(_DELAYS, LOUDEST)  # of power: the most that an echo can have
        self._alike = ALIKE
        self._proven = False  # the caller has a loudspeaker
        self._sought = -_AGAIN  # a proof, when
        self._asked = 0  # when, last
        self._doubt = 0  # asked about in a row

    def played(self, samples: bytes, now: float) -> None:
        """These left for the client: 16-bit mono native samples at 16 kHz, as they are put on the
        wire. Silence between replies need not be told."""
        self._played.add(samples, round(now * _RATE) + len(samples) // 4)

    def heard(self, samples: bytes, now: float) -> None:
        """These came from the client, their last one at `now`. A `Detector` says it."""
        self._heard.add(samples, round(now * _RATE))
        if self._recent():
            self._rule_out()

    def echoes(self) -> bool | None:
        """Whether the last frame heard is our echo and nothing but; None: too early to tell, ask
        about the next. False, and free of charge, when nothing was played lately."""
        now, self._asked, before = self._heard.end, self._heard.end, self._asked
        if not self._recent():
            return False
        step = self._heard.step
        self._doubt = self._doubt + step if now - before <= 2 * step else step
        if now - self._sought >= _AGAIN:
            self._sought = now
            self._seek_proof(now)
        frame, room = self._frame(), self._room()
        if frame <= LOUDER * room:
            return True  # nobody speaks
        likeness = self._likeness(now)
        explained = frame <= LOUDER * (self._expected(now) + room)
        if np.max(likeness[explained], initial=0.0) >= self._alike:
            return True if self._proven or self._doubt >= _DOUBT else None
        return self._proven and float(np.max(likeness)) >= CHANGED

    def _recent(self) -> bool:
        """Whether what was played may still be heard."""
        since = self._heard.end - self._played.end
        return bool(self._played) and since <= (_DELAYS + _TAIL) * _HOP

    def _frame(self) -> float:
        """Loudness of the last."""
        return float(np.mean(self._heard.take(self._heard.end - self._heard.step) ** 2))

    def _room(self) -> float:
        """Loudness of its noise."""
        loudness = _loudness(self._heard.take(self._heard.end - 2 * _RATE))
        heard = loudness[loudness > 0]
        return max(float(np.quantile(heard, ROOM)), _TINY) if len(heard) else _TINY

    def _rule_out(self) -> None:
        """Lower the gains to what was just heard. A microphone that is off tells nothing."""
        now = self._heard.end
        heard = _loudness(self._heard.take(now - _BLOCK * _HOP))
        if not heard.all():
            return
        hops = _loudness(self._played.take(now - (_DELAYS + _SWAY + _BLOCK - 1) * _HOP, now))
        blocks = np.convolve(hops, np.full(_BLOCK, 1 / _BLOCK), "valid")
        played = _nearby(blocks[::-1]).min(1)[:_DELAYS]
        most = max(float(np.mean(heard)), _TINY) / np.maximum(played, 1.0)
        forgotten = self._gains * 10 ** (FORGOTTEN_DB_S / 10 * self._heard.step / _RATE)
        known = np.where(played >= _AUDIBLE, np.minimum(forgotten, most), forgotten)
        self._gains = np.minimum(known, LOUDEST)

    def _expected(self, now: int) -> ByDelay:
        """The loudest that the echo can be now, with reverberation."""
        powers = _loudness(self._played.take(now - (_DELAYS + _TAIL) * _HOP, now))
        fall = REVERBERATION_DB_S * _HOP / _RATE * np.arange(len(powers))
        levels = 10 * np.log10(powers + 1e-9) + fall
        sounding = 10 ** ((np.maximum.accumulate(levels) - fall) / 10)
        return np.asarray(self._gains * _nearby(sounding[::-1]).max(1)[:_DELAYS])

    def _likeness(self, now: int) -> ByDelay:
        likeness, _ = self._match(now, _RECENT)
        by_delay = likeness[:0:-1].reshape(_DELAYS, _HOP).max(1)
        return np.asarray(_nearby(by_delay).max(1))

    def _seek_proof(self, now: int) -> None:
        """A long piece that matches tells what the echo of this caller is like."""
        if not _lasts(self._heard.take(now - _LONG)):
            return
        likeness, gains = self._match(now, _LONG)
        at = int(np.argmax(likeness))
        if likeness[at] >= SURE:
            self._proven = True
            self._alike = max(self._alike, USUAL * float(likeness[at]))
            delay = (len(likeness) - 1 - at) // _HOP
            near = self._gains[max(0, delay - 1) : delay + 2]
            np.maximum(near, min(gains[at] * likeness[at] ** 2, LOUDEST), out=near)

    def _match(self, now: int, size: int) -> tuple[ByDelay, ByDelay]:
        """Of the last `size` samples heard and all pieces played that they can be the echo of,
        the longest delay first: how alike, 0 of what is too loud, and the gains."""
        heard = self._heard.take(now - size)
        played = self._played.take(now - size - _DELAYS * _HOP, now)
        likeness, energies = match(heard, played)
        gains = float(heard @ heard) / (energies + size)
        return np.where(gains <= 2 * LOUDEST, likeness, 0.0), gains


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

    def take(self, begin: int, end: int | None = None) -> Row:
        """From `begin` until `end` (None: now); zeros where there is nothing."""
        end = self.end if end is None else end
        row = np.zeros(end - begin, np.float32)
        for at, piece in self._pieces:
            first, last = max(at, begin), min(at + len(piece), end)
            if first < last:
                row[first - begin : last - begin] = piece[first - at : last - at]
        return row


def match(heard: Row, played: Row) -> tuple[ByDelay, ByDelay]:
    """How well `heard` matches each piece of the longer `played`: normalised correlation without
    its sign; and the energy of that piece."""
    size = 1 << (len(played) - 1).bit_length()
    spectrum = np.fft.rfft(played, size) * np.conj(np.fft.rfft(heard, size))
    products = np.fft.irfft(spectrum, size)[: len(played) - len(heard) + 1]
    sums = np.concatenate([[0.0], np.cumsum(played.astype(np.float64) ** 2)])
    energies = sums[len(heard) :] - sums[: len(sums) - len(heard)]
    floor = _TINY * len(heard)
    likeness = np.abs(products) / np.sqrt((energies + floor) * (float(heard @ heard) + floor))
    return likeness, energies


def _nearby(by_delay: ByDelay) -> ByDelay:
    """Each with those from which its delay may be off."""
    padded = np.pad(by_delay, _SWAY, "edge")
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * _SWAY + 1)


def _lasts(row: Row) -> bool:
    """Whether its power is spread over more than a syllable."""
    powers = _loudness(row)
    return float(np.sum(powers)) ** 2 * _HOP > _LASTS * float(powers @ powers)


def _loudness(row: Row) -> ByDelay:
    """Mean square of each hop; a rest at the begin is left out."""
    hops = row[len(row) % _HOP :].reshape(-1, _HOP)
    return np.asarray(np.mean(hops**2, axis=1), np.float64)
