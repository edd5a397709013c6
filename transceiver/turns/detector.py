"""Where turns begin and end in one caller's sound.

Pure. Sound comes as it arrives, in pieces of any size, and is judged in whole frames; positions are
milliseconds on the line of samples heard so far. Speech begins with a frame at the threshold and
goes on until one falls 0.15 below it. So much of it in a row (`min_speech_ms`) begins a turn, so
long without any (`silence_ms`) ends it. The model is never reset in a call: what it knows of the
voice and the room outlives a turn.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from transceiver.turns.guard import Guard
from transceiver.turns.settings import Limits, Sensitivity, Settings
from transceiver.turns.vad import RATE, Vad

HYSTERESIS = 0.15
SETTLED_MS = 500  # of digital silence; more would only dull the model for the next word

STIRRING = 10.0  # times the power of the room that was heard before: perhaps the next word
FAINT = 12.0**2  # of a mean square: no room is quieter than this

_PER_MS = RATE // 1000  # samples
_HOP = 5 * _PER_MS
_NEW = 4  # hops: the newest packet
_BEFORE = 64  # hops that tell what the room is like


class Started(NamedTuple):
    """Someone speaks. Begins a turn, or resumes one whose answer has not been heard yet: the
    owner knows."""

    start_ms: int  # with the prefix; not before the end of the turn before


class Stopped(NamedTuple):
    end_ms: int  # with the silence that ended it
    speech_end_ms: int  # of the last frame of speech


Turn = Started | Stopped


class Detector:
    """One call's. Ask `timer` again at `deadline`: a client that sends nothing is silent, too."""

    def __init__(self, vad: Vad, guard: Guard | None = None, limits: Limits | None = None) -> None:
        """`guard` knows the agent's echo: tell it what is played; what is heard it learns here."""
        self._vad = vad
        self._guard = guard
        self._limits = limits or Limits()
        self._settings: Settings | None = Settings()
        self._bytes = vad.frame * 2
        self._silence = bytes(self._bytes)
        self._rest = b""  # heard, but no whole frame yet
        self._newest = b""
        self._heard = 0  # samples, as all positions here
        self._judged = 0
        self._arrived = 0.0
        self._still = 0  # digital silence up to `_judged`
        self._voiced = False  # the last frame was speech
        self._run = 0  # speech in a row that is no turn yet
        self._speaking = False
        self._start = 0  # of the open turn, without its prefix
        self._speech_end = 0
        self._floor = 0  # no later turn reaches back behind this

    @property
    def settings(self) -> Settings | None:
        """The client's; may be set at any time. None: nothing is looked for, an open turn is
        forgotten."""
        return self._settings

    @settings.setter
    def settings(self, settings: Settings | None) -> None:
        self._settings = settings
        if settings is None:
            self.forget()

    @property
    def position_ms(self) -> int:
        """Of sound heard so far."""
        return self._heard // _PER_MS

    @property
    def speaking(self) -> bool:
        """Between `Started` and `Stopped`."""
        return self._speaking

    @property
    def suspects(self) -> bool:
        """Speech may have begun: the newest 20 ms are louder than the room was, or frames like
        speech have come, but not enough of them for `Started`. Hold the first sound of an answer
        while this is True; a noise holds it for 0.2 s at most."""
        return self._run > 0 or (not self._speaking and self._stirs())

    @property
    def deadline(self) -> float:
        """When the turn ends if nothing more is heard; math.inf outside of turns. Moves with
        `hear`, `timer`, `forget` and `settings` only."""
        if not self._speaking or self._settings is None:
            return inf
        wait = self._settings.silence_ms + self._limits.absence_ms
        return self._arrived + wait / 1000 - (self._heard - self._speech_end) / RATE

    def hear(self, samples: bytes, playing: bool, now: float) -> list[Turn]:
        """Sound that follows the last: 16-bit mono native samples at 16 kHz, any number of them.
        `playing`: the agent speaks. Digital silence costs next to nothing."""
        turns: list[Turn] = []
        self._heard += len(samples) // 2
        self._arrived = now
        if self._settings is None:
            self._rest = self._newest = b""
            self._judged = self._heard
            return turns
        self._newest = (self._newest + samples)[-(_BEFORE + _NEW) * _HOP * 2 :]
        sound = self._rest + samples
        whole = len(sound) - len(sound) % self._bytes
        for at in range(0, whole, self._bytes):
            frame = sound[at : at + self._bytes]
            self._judged += self._vad.frame
            if self._guard:
                self._guard.heard(frame, now - (self._heard - self._judged) / RATE)
            self._take(self._is_speech(frame, playing), playing, turns)
        self._rest = sound[whole:]
        return turns

    def timer(self, now: float) -> list[Turn]:
        """At `deadline`: the client sends nothing any more, so its turn has ended. The time since
        its last sound counts as silence."""
        if now < self.deadline or self._settings is None:
            return []
        self._voiced = False
        silence = (self._settings.silence_ms + self._limits.absence_ms) * _PER_MS
        return [self._stop(max(self._heard, self._speech_end + silence))]

    def forget(self) -> None:
        """The open turn, if any, was none: no `Stopped` follows."""
        self._speaking = self._voiced = False
        self._run = 0
        self._floor = self._judged

    def _stirs(self) -> bool:
        size = len(self._newest) // (_HOP * 2) * _HOP * 2
        hops = np.frombuffer(self._newest[len(self._newest) - size :], np.int16).reshape(-1, _HOP)
        if len(hops) <= _NEW:
            return False
        powers = np.mean(hops.astype(np.float32) ** 2, axis=1)
        room = max(float(np.median(powers[:-_NEW])), FAINT)
        return bool(np.max(powers[-_NEW:]) > STIRRING * room)

    def _is_speech(self, frame: bytes, playing: bool) -> bool | None:
        """None: it may be our echo."""
        if frame == self._silence:
            self._still += self._vad.frame
            if self._still > SETTLED_MS * _PER_MS:
                return False
        else:
            self._still = 0
        threshold = self._sensitivity(playing).threshold
        if threshold is None and self._settings:
            threshold = self._settings.threshold
        assert threshold is not None
        if self._voiced:
            threshold -= HYSTERESIS
        if self._vad.probability(frame) < threshold:
            return False
        if self._speaking and not playing:
            return True  # an echo that fades does not end a turn, nor a person's likeness to it
        echoes = self._guard.echoes() if self._guard else False
        return None if echoes is None else not echoes

    def _take(self, speech: bool | None, playing: bool, turns: list[Turn]) -> None:
        """Go on by the frame that was just judged. What may be echo begins no turn, but belongs to
        what does."""
        self._voiced = speech is not False
        if self._speaking:
            self._go_on(turns)
        elif not self._voiced:
            self._run = 0
        else:
            self._run += self._vad.frame
            if speech and self._run >= self._sensitivity(playing).min_speech_ms * _PER_MS:
                turns.append(self._begin())

    def _begin(self) -> Started:
        assert self._settings is not None
        self._speaking = True
        self._speech_end = self._judged
        self._start = self._judged - self._run
        self._run = 0
        start = max(self._start - self._settings.prefix_ms * _PER_MS, self._floor)
        return Started(min(start, self._start) // _PER_MS)

    def _go_on(self, turns: list[Turn]) -> None:
        assert self._settings is not None
        if self._voiced:
            self._speech_end = self._judged
        silent = self._judged - self._speech_end >= self._settings.silence_ms * _PER_MS
        if silent or self._judged - self._start >= self._limits.longest_turn_ms * _PER_MS:
            turns.append(self._stop(self._judged))

    def _stop(self, end: int) -> Stopped:
        self._speaking = False
        self._floor = end
        return Stopped(end // _PER_MS, self._speech_end // _PER_MS)

    def _sensitivity(self, playing: bool) -> Sensitivity:
        return self._limits.playing if playing else self._limits.quiet
