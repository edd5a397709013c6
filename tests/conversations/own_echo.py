"""The agent's own voice comes back to it, 20 dB quieter and 150 ms late: does it fall silent?

Ten calls of five turns, each with another delay on the way, every other in a room that
reverberates, through Opus both ways on a clock of their own. Agent and caller have the same voice
and say other words. Three times: alone with its echo, with a caller who talks over it, and
unguarded, to show that the echo is one that would interrupt.
"""

from dataclasses import dataclass, field

import numpy as np

from tests.conversations.clips import RATE, phrases, read
from tests.conversations.loudspeaker import FRAME, Loudspeaker, Row
from tests.figures.measurement import Findings, Measurement
from tests.lab.speech import OTHER, SPOKEN
from tests.report import Target
from transceiver.audio.opus import Decoder, Encoder
from transceiver.turns.detector import Detector, Started
from transceiver.turns.guard import Guard
from transceiver.turns.vad import make

CALLS, TURNS = 10, 5
ECHO_S = 0.15
WAYS_S = tuple(number * 0.06 for number in range(CALLS))  # on top of it: networks and buffers
SAYS_S, AFTER_S = 3.0, 2.0  # of a turn: the agent speaks, and is silent
OVER_S = 1.2  # of the caller

TARGETS = (
    Target("own_echo_interrupts", "=", 0, "interrupts"),
    Target("talk_over_heard", "=", CALLS * TURNS, "turns"),
    Target("own_echo_interrupts_unguarded", ">", 0, "interrupts"),
)


def measurements() -> list[Measurement]:
    return [Measurement("own_echo", TARGETS, measure)]


@dataclass
class Turn:
    """One of the agent's. Seconds from its begin."""

    over: float | None = None  # when the caller begins to talk
    noticed: list[float] = field(default_factory=list)  # begins of speech


class Agent:
    """Speaks, and listens while it does."""

    def __init__(self, guarded: bool) -> None:
        self._guard = Guard() if guarded else None
        self._detector = Detector(make("silero"), self._guard)
        self._encoder, self._decoder = Encoder(RATE), Decoder(RATE)

    def step(self, says: bytes | None, heard: bytes, now: float) -> tuple[bytes, bool]:
        """20 ms: the packet that leaves, and whether speech was noticed."""
        if says and self._guard:
            self._guard.played(says, now)
        turns = self._detector.hear(self._decoder.decode(heard), says is not None, now)
        packet = self._encoder.encode(says or bytes(FRAME * 2))
        return packet, any(isinstance(turn, Started) for turn in turns)


def measure(calls: int = CALLS) -> Findings:
    alone, over, unguarded = (
        [turn for number in range(calls) for turn in call(number, guarded, talks)]
        for guarded, talks in ((True, False), (True, True), (False, False))
    )
    late = [turn.noticed[0] - turn.over for turn in over if heard(turn) and turn.over is not None]
    return Findings(
        {
            "own_echo_interrupts": sum(len(turn.noticed) for turn in alone),
            "talk_over_heard": sum(heard(turn) for turn in over),
            "own_echo_interrupts_unguarded": sum(len(turn.noticed) for turn in unguarded),
        },
        {
            "turns": len(alone),
            "delays_ms": [round((ECHO_S + way) * 1000) for way in WAYS_S[:calls]],
            "talk_over_noticed_after_ms": {
                f"p{share}": round(float(np.percentile(late, share)) * 1000) for share in (50, 95)
            },
        },
    )


def heard(turn: Turn) -> bool:
    """The caller interrupted while he spoke, and nothing else did before."""
    return turn.over is not None and any(
        turn.over <= at <= turn.over + OVER_S for at in turn.noticed[:1]
    )


def call(number: int, guarded: bool, talks: bool) -> list[Turn]:
    """All turns of one call."""
    agent = Agent(guarded)
    room = Loudspeaker(ECHO_S + WAYS_S[number], reverberation_s=0.3 * (number % 2), seed=number)
    chance = np.random.default_rng(number)
    now, packet, turns = 10.0, None, []
    for count in range(TURNS):
        turn = Turn(float(chance.uniform(0.3, SAYS_S - OVER_S)) if talks else None)
        says, voice = _says(number * TURNS + count), _voice(number * TURNS + count, turn.over)
        for step in range(len(voice)):
            now += FRAME / RATE
            mouth = says[step] if step < len(says) else None
            packet, noticed = agent.step(mouth, room.step(packet, voice[step]), now)
            if noticed:
                turn.noticed.append(step * FRAME / RATE)
        turns.append(turn)
    return turns


def _says(number: int) -> list[bytes]:
    """The agent's words, in frames; other ones in each turn."""
    size = round(SAYS_S * RATE)
    samples = np.resize(np.roll(read(OTHER), -number * 23_456), size)
    return [samples[at : at + FRAME].tobytes() for at in range(0, size - FRAME + 1, FRAME)]


def _voice(number: int, start_s: float | None) -> list[Row]:
    """The caller's in frames, silent unless he starts."""
    samples = np.zeros(round((SAYS_S + AFTER_S) * RATE))
    if start_s is not None:
        said = phrases(SPOKEN)
        start, size = round(start_s * RATE), round(OVER_S * RATE)
        samples[start : start + size] = np.resize(said[number % len(said)], size)
    return list(samples.reshape(-1, FRAME))
