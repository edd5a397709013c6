"""Callers who talk into the replies of a parrot, and what each interruption looked like from there.

What happened when is read from the packets and events that a caller got, by `read`, which is pure.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.conversations.caller import PACKET_S, Caller, Came, Told, Wishes, calling
from tests.conversations.heard import Heard
from tests.conversations.mouth import RATE, phrases
from tests.conversations.service import Service
from tests.lab.ear import Row

LEAST_REPLY_S, MOST_REPLY_S = 1.5, 2.6
MOMENT_S = (0.4, 1.2)  # after the reply's first packet; before it there is the turn's pre-roll
WATCHED_S = 1.4  # after the first word: until then it is over, or was none
JUST_BEFORE_S = 0.1  # of the decision: a reply that was in a pause then ends without a cut

STARTED, SPEECH = "output_audio_buffer.started", "input_audio_buffer.speech_started"
CLEARED, TRUNCATED = "output_audio_buffer.cleared", "conversation.item.truncated"


class Word(NamedTuple):
    """When a caller began to talk into a reply."""

    spoke_at: float  # its first packet of speech
    phrase: int


@dataclass(frozen=True)
class Interruption:
    """Moments as in `caller`. `decided_at` is on the server's side of the way."""

    spoke_at: float
    decided_at: float | None  # speech_started; None: it went unnoticed
    last_sound_at: float | None  # of the reply; None: there was none
    sounded: bool  # there was sound just before the decision
    talk_began_at: float | None  # the reply's first packet
    talk: Sequence[float]  # begins of its packets, in seconds after that on their time line
    told_ms: float | None  # audio_end_ms; 0 if the reply was cleared and not truncated

    @property
    def decision_ms(self) -> float | None:
        """First word to decision."""
        return None if self.decided_at is None else (self.decided_at - self.spoke_at) * 1e3

    @property
    def took_ms(self) -> float | None:
        """First word to last sound."""
        if self.last_sound_at is None or not self.sounded:
            return None
        return (self.last_sound_at - self.spoke_at) * 1e3

    @property
    def flush_ms(self) -> float | None:
        """Decision to last sound."""
        if self.last_sound_at is None or self.decided_at is None or not self.sounded:
            return None
        return max(0.0, self.last_sound_at - self.decided_at) * 1e3

    def played_ms(self, depth_s: float) -> float | None:
        """What an ear with a buffer of `depth_s` had played of the reply at the decision."""
        if self.decided_at is None or self.talk_began_at is None:
            return None
        place = self.decided_at - self.talk_began_at - depth_s
        return sum(min(max(0.0, place - begin), PACKET_S) for begin in self.talk) * 1e3


def record(
    service: Service, rounds: int, *, callers: int = 4, way_s: float = 0.0, seed: int = 1
) -> list[Interruption]:
    """`rounds` of each of the callers, who talk at the same time. Raises `MeasurementError` if a
    call or a reply does not come."""
    phrases()  # to read them takes a second, in which nobody would speak
    return asyncio.run(_record(service, [Wishes({}, way_s=way_s)] * callers, rounds, seed))


async def _record(
    service: Service, wishes: Sequence[Wishes], rounds: int, seed: int
) -> list[Interruption]:
    async with calling(service, wishes) as callers:
        talks = (
            _talk(caller, rounds, random.Random(seed * 100 + number))
            for number, caller in enumerate(callers)
        )
        words = await asyncio.gather(*talks)
        return [
            found
            for caller, said, wish in zip(callers, words, wishes, strict=True)
            for found in read(caller.came, caller.told, said, wish.way_s)
        ]


async def _talk(caller: Caller, rounds: int, chance: random.Random) -> list[Word]:
    """Each word is a turn too, and its reply is what the next one interrupts."""
    await caller.until("session.created")
    await asyncio.sleep(chance.uniform(0.3, 1.0))  # not in chorus
    number = chance.randrange(len(_long()))
    words: list[Word] = []
    await _say(caller, number)
    for _ in range(rounds):
        replied = await caller.until(STARTED, since=caller.sent[-1].at)
        await asyncio.sleep(chance.uniform(*MOMENT_S))
        assert replied
        number += 1
        words.append(Word(await _say(caller, number), number))
    await asyncio.sleep(WATCHED_S)
    return words


async def _say(caller: Caller, number: int) -> float:
    """Returns when it is said: the moment of its first packet."""
    before = len(caller.sent)
    caller.say(_long()[number % len(_long())])
    await caller.happens(lambda: not caller.mouth.speaking, "not said")
    return next(sent.at for sent in caller.sent[before:] if sent.speech)


def _long() -> Sequence[Row]:
    """Phrases whose replies are there long enough to be interrupted."""
    most = round(MOST_REPLY_S * RATE)
    return [each[:most] for each in phrases() if len(each) >= LEAST_REPLY_S * RATE]


def read(
    came: Sequence[Came], told: Sequence[Told], words: Iterable[Word], way_s: float = 0.0
) -> list[Interruption]:
    """Pure. `came` and `told` in the order of arrival."""
    heard = Heard()
    for packet in came:
        heard.packet(packet.payload, packet.at)
    return [_read(came, heard, told, word, way_s) for word in words]


def _read(
    came: Sequence[Came], heard: Heard, told: Sequence[Told], word: Word, way_s: float
) -> Interruption:
    since, until = word.spoke_at, word.spoke_at + WATCHED_S
    seen = _first(told, since, until)
    times = [at for at, loud in zip(heard.packet_times, heard.loud, strict=True) if loud]
    sounds = [at for at in times if at < until]
    decided = seen[SPEECH].at - way_s if SPEECH in seen else None
    before = since if decided is None else decided + way_s
    began = [n for n, packet in enumerate(came) if packet.marker and packet.at < before]
    talk = came[began[-1] :] if began else []
    return Interruption(
        spoke_at=since,
        decided_at=decided,
        last_sound_at=sounds[-1] if sounds else None,
        sounded=any(before - JUST_BEFORE_S < at <= before for at in times),
        talk_began_at=talk[0].at if talk else None,
        talk=[((packet.timestamp - talk[0].timestamp) & 0xFFFFFFFF) / RATE for packet in talk],
        told_ms=_told_ms(seen),
    )


def _first(told: Sequence[Told], since: float, until: float) -> Mapping[str, Told]:
    """The first event of each kind in that time."""
    seen: dict[str, Told] = {}
    for each in told:
        if since < each.at < until:
            seen.setdefault(each.event["type"], each)
    return seen


def _told_ms(seen: Mapping[str, Told]) -> float | None:
    if TRUNCATED in seen:
        return float(seen[TRUNCATED].event["audio_end_ms"])
    return 0.0 if CLEARED in seen else None
