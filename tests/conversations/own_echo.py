"""The agent's own voice comes back to it, 20 dB quieter and 150 ms late: does it fall silent?

Ten calls of five turns with the parrot, each with another delay on the way and every other in a
room that reverberates, through Opus both ways on a clock of their own. The caller says something,
is answered, and hears the answer through a loudspeaker. Three times: he listens, he talks over it
with other words of the same voice, and the guard is off, to show that the echo would interrupt.

Then callers with headphones, of whose voice the guard must take nothing for echo: they talk over
answers again and again, as loud as the agent or up to 12 dB quieter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.audio.wire_to_wire import spread
from tests.conversations.clips import RATE, phrases, read
from tests.conversations.loudspeaker import FRAME, Loudspeaker, Row
from tests.conversations.parrot_line import STEP_S, ParrotLine
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab.speech import OTHER, SPOKEN
from tests.report import Target
from transceiver.audio.opus import Encoder
from transceiver.turns.vad import Stock

CALLS, TURNS = 10, 5
UNGUARDED = 4  # calls
ECHO_S, ECHO_DB = 0.15, -20.0
WAYS_S = tuple(number * 0.06 for number in range(CALLS))  # on top of it: networks and buffers
SAYS_S = 2.4  # each turn, and its answer
HEADPHONES, OVERS = 40, 5  # calls, and how often an answer is talked over in each
HEADPHONES_DB = -120.0
MOMENT_S = (0.3, 1.2)  # of an answer, when a caller with headphones begins to talk
QUIETEST_DB = -12.0  # against the agent
AFTER_S = 1.5  # an answer: its echo, and as long as the room may sound
OVER_S = 1.2  # of talk over an answer
WORD_S = 1.5  # an answer that is talked over, at least
LOUD, HEARD = 2400.0, 390.0  # RMS of what is said, and of 20 ms from which on it is speech
PATIENCE_S = 2.0  # for an answer to begin

TARGETS = (
    Target("own_echo_interrupts", "=", 0, "interrupts"),
    Target("talk_over_heard", "=", CALLS * TURNS, "turns"),
    Target("talk_over_p95", "≤", 110, "ms"),
    Target("own_echo_interrupts_unguarded", ">", 0, "interrupts"),
    Target("headphones_heard", "=", HEADPHONES * OVERS, "words"),
    Target("headphones_p95", "≤", 90, "ms"),
    Target("headphones_slowest", "≤", 160, "ms"),
)

_STARTED, _CLEARED = "input_audio_buffer.speech_started", "output_audio_buffer.cleared"
_AUDIBLE = "output_audio_buffer.started"
_SILENCE = bytes(FRAME * 2)


def measurements() -> list[Measurement]:
    return [Measurement("own_echo", TARGETS, measure)]


def measure(calls: int = CALLS) -> Findings:
    stock = Stock("silero")
    alone = [turn for number in range(calls) for turn in call(number, stock)]
    over = [turn for number in range(calls) for turn in call(number, stock, talks=True)]
    unguarded = [
        turn
        for number in range(min(calls, UNGUARDED))
        for turn in call(number, stock, guarded=False)
    ]
    words = [
        turn
        for number in range(calls * HEADPHONES // CALLS)
        for turn in call_with_headphones(number, stock)
    ]
    return Findings(
        {
            "own_echo_interrupts": sum(len(turn.started) for turn in alone),
            "talk_over_heard": sum(turn.heard for turn in over),
            "talk_over_p95": float(np.percentile(_took_ms(over), 95)),
            "own_echo_interrupts_unguarded": sum(len(turn.started) for turn in unguarded),
            "headphones_heard": sum(turn.heard for turn in words),
            "headphones_p95": float(np.percentile(_took_ms(words), 95)),
            "headphones_slowest": max(_took_ms(words)),
        },
        {
            "turns": len(alone),
            "turns_unguarded": len(unguarded),
            "delays_ms": [round((ECHO_S + way) * 1000) for way in WAYS_S[:calls]],
            "talk_over_silenced_after_ms": spread(np.array(_took_ms(over))),
            "headphones_silenced_after_ms": spread(np.array(_took_ms(words))),
        },
    )


@dataclass
class Turn:
    """Seconds from the first sound of its answer."""

    over_s: float | None = None  # the caller begins to talk
    started: list[float] = field(default_factory=list)  # speech was noticed
    cleared: list[float] = field(default_factory=list)  # the answer was silenced

    @property
    def heard(self) -> bool:
        """The caller silenced the answer while he spoke, and nothing did before."""
        if self.over_s is None or not self.cleared:
            return False
        return self.over_s <= self.cleared[0] <= self.over_s + OVER_S


def call(
    number: int, stock: Stock, *, talks: bool = False, guarded: bool = True, turns: int = TURNS
) -> Iterator[Turn]:
    """Its turns, one after another."""
    line = _Call(number, stock, guarded)
    chance = np.random.default_rng(number)
    for count in range(number * TURNS, number * TURNS + turns):
        line.say(_words(count))
        line.wait(_AUDIBLE)
        turn = Turn(float(chance.uniform(0.3, SAYS_S - OVER_S)) if talks else None)
        began, told = line.now, len(line.told)
        line.say(_over(count, turn.over_s))
        for kind, at in line.told[told:]:
            if kind in (_STARTED, _CLEARED):
                (turn.started if kind == _STARTED else turn.cleared).append(at - began)
        yield turn
        line.say(np.zeros(round((OVER_S + AFTER_S) * RATE) if talks else 0))
    line.end()


def call_with_headphones(
    number: int, stock: Stock, *, overs: int = OVERS, guarded: bool = True
) -> Iterator[Turn]:
    """Every answer is talked over: one as loud as all by something not louder, and the answer to
    that, of which nothing is told, by the next."""
    line = _Call(number, stock, guarded, gain_db=HEADPHONES_DB)
    chance = np.random.default_rng(number)
    line.say(_word(number * overs, 0.0))
    for count in range(number * overs, (number + 1) * overs):
        line.wait(_AUDIBLE)
        turn, began, told = Turn(), line.now, len(line.told)
        line.say(np.zeros(round(chance.uniform(*MOMENT_S) * RATE)))
        turn.over_s = line.now + STEP_S - began  # his first packet
        line.say(_word(count + 5, float(chance.uniform(QUIETEST_DB, 0))))
        turn.cleared = [at - began for kind, at in line.told[told:] if kind == _CLEARED]
        yield turn
        line.wait(_AUDIBLE)
        line.say(np.zeros(round(MOMENT_S[0] * RATE)))
        line.say(_word(count + 1, 0.0))
    line.end()


def _took_ms(turns: Sequence[Turn]) -> list[float]:
    """From the first word to the silence."""
    return [(turn.cleared[0] - turn.over_s) * 1e3 for turn in turns if turn.heard and turn.over_s]


class _Call:
    """The parrot, and a caller in front of a loudspeaker."""

    def __init__(
        self, number: int, stock: Stock, guarded: bool, *, gain_db: float = ECHO_DB
    ) -> None:
        way_s, reverberation_s = WAYS_S[number % CALLS], 0.3 * (number % 2)
        self._room = Loudspeaker(
            ECHO_S + way_s, gain_db, reverberation_s=reverberation_s, seed=number
        )
        self._line = ParrotLine(stock, {}, echo_guard=guarded)
        self._encoder = Encoder(RATE)

    @property
    def now(self) -> float:
        return self._line.now

    @property
    def told(self) -> list[tuple[str, float]]:
        return self._line.told

    def say(self, voice: Row) -> None:
        """To the end, in whole packets."""
        for frame in voice[: len(voice) // FRAME * FRAME].reshape(-1, FRAME):
            played = self._line.frames[-1][1] if self._line.frames else None
            self._line.step(self._room.step(self._encoder.encode(played or _SILENCE), frame))

    def wait(self, kind: str) -> None:
        """For the next event of a kind; the caller is silent."""
        told = len(self.told)
        for _ in range(round(PATIENCE_S / STEP_S)):
            self.say(np.zeros(FRAME))
            if any(each == kind for each, _ in self.told[told:]):
                return
        expect(False, f"no {kind}")

    def end(self) -> None:
        self._line.end()


def _words(number: int) -> Row:
    """What the caller says and the parrot says back; other words in each turn."""
    speech = np.concatenate([read(OTHER)[RATE // 5 :], read(OTHER)[RATE // 5 : RATE]])
    size = round(SAYS_S * RATE)
    start = number * 23_456 % (len(speech) - size)
    return speech[start : start + size].astype(np.float64)


def _over(number: int, start_s: float | None) -> Row:
    """What he says while he is answered: nothing, or something from `start_s` on."""
    voice = np.zeros(round((SAYS_S + AFTER_S) * RATE))
    if start_s is not None:
        said: Sequence[Row] = [each.astype(np.float64) for each in phrases(SPOKEN)]
        start, size = round(start_s * RATE), round(OVER_S * RATE)
        voice[start : start + size] = np.resize(said[number % len(said)], size)
    return voice


def _word(number: int, level_db: float) -> Row:
    """Something to say, from its first packet that is heard; at 0 all are as loud."""
    said = [each.astype(np.float64) for path in (SPOKEN, OTHER) for each in phrases(path)]
    said = [each for each in said if len(each) >= WORD_S * RATE]
    word = said[number % len(said)]
    word = word * LOUD / np.sqrt(np.mean(word**2)) * 10 ** (level_db / 20)
    frames = word[: len(word) // FRAME * FRAME].reshape(-1, FRAME)
    first = np.flatnonzero(np.mean(frames**2, axis=1) >= HEARD**2)[0]
    return np.asarray(frames[first:].ravel()[: round(WORD_S * RATE)])
