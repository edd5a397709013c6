"""An uplink in compressed time: a score, perhaps through a bad network, becomes a line of samples.

Pure, so a minute takes a second and is the same each time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.audio.score import Note, Score
from tests.lab.ear import Row
from tests.lab.frame import Kind
from tests.lab.impairment import UP, Frame, Impairment, Rule
from transceiver.audio.uplink import Kind as SoundKind
from transceiver.audio.uplink import Sound, Uplink
from transceiver.rtp import CLOCK_RATE, Packet

_SSRC = 7
_PAYLOAD_TYPE = 111
_CLIENT = ("10.1.0.2", 1)


@dataclass(frozen=True, slots=True)
class Given:
    """What the uplink gave, and when."""

    at: float
    sound: Sound


@dataclass(frozen=True, slots=True)
class Journey:
    uplink: Uplink  # as it is in the end, with its counts
    given: Sequence[Given]

    def samples(self) -> Row:
        """-1..1 at the uplink's rate, as they follow each other from the first one given."""
        pcm = b"".join(each.sound.samples for each in self.given)
        return np.frombuffer(pcm, np.int16) / 32768

    def seconds(self, *kinds: SoundKind) -> float:
        """Of sound of these kinds, or of all."""
        return sum(
            len(each.sound.samples) / 2 / self.uplink.rate
            for each in self.given
            if not kinds or each.sound.kind in kinds
        )

    def breaks(self) -> list[int]:
        """Ticks that are missing (or twice) between a sound and the next; none when all is well."""
        wanted = self.given[0].sound.timestamp
        found = []
        for each in self.given:
            if each.sound.timestamp != wanted:
                found.append(each.sound.timestamp - wanted)
            ticks = len(each.sound.samples) // 2 * (CLOCK_RATE // self.uplink.rate)
            wanted = each.sound.timestamp + ticks
        return found


def travel(score: Score, *rules: Rule, seed: int = 1, rate: int = 24000) -> Journey:
    """Each note arrives as the rules of a fault hop have it, and the uplink's timers ring in time;
    at the end what it still waits for is due."""
    end = Uplink(rate)
    given: list[Given] = []
    for at, note in arrivals(score, Impairment(rules, seed)):
        _ring(end, given, at)
        given += [Given(at, sound) for sound in end.receive(_packet(note), at)]
    _ring(end, given, float("inf"))
    return Journey(end, given)


def arrivals(score: Score, network: Impairment) -> list[tuple[float, Note]]:
    """In the order in which they arrive; of equal times, as they were sent."""
    came = []
    for note in sorted(score, key=lambda note: note.at):
        frame = Frame(UP, Kind.RTP, _CLIENT, len(note.payload) + 54)
        came += [(due, note) for due in network.decide(frame, note.at)]
    return sorted(came, key=lambda each: each[0])


def _ring(end: Uplink, given: list[Given], until: float) -> None:
    while (due := end.deadline) <= until and due != float("inf"):
        given += [Given(due, sound) for sound in end.timer(due)]


def _packet(note: Note) -> Packet:
    return Packet(_PAYLOAD_TYPE, note.sequence, note.timestamp, _SSRC, note.payload, note.marker)
