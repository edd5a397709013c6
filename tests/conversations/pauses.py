"""A speaker pauses: is a pause taken for the end, and is he talked over when he goes on?

Each clip is heard by a detector in packets of 20 ms on a clock of its own, so a minute takes a
second and is the same each time. Who answers does so as a backend does: some time after the end of
a turn, not while speech is suspected, and not at all if speech resumed before the first sound.

Sound into resumed speech is a first sound after the arrival of a packet of which, by the clip's own
account, 10 ms or more are speech again. It is looked for with every time to think from none to
0.8 s, since X"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np

from tests.conversations.clips import RATE, Clip, Span, clips
from tests.conversations.parrot_line import SLOT_S, ParrotLine
from tests.figures.measurement import Findings, Measurement
from tests.report import Target
from transceiver.audio.opus import Encoder
from transceiver.turns.detector import Detector, Stopped, Turn
from transceiver.turns.settings import Settings
from transceiver.turns.vad import Stock, Vad, make

THINK_S = tuple(number * 0.02 for number in range(41))
STATED_THINK_S = 0.3
PACKET_S = 0.02
TELLS_S = 0.01  # of speech in a packet
_STOPPED = "input_audio_buffer.speech_stopped"

SILERO_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "server_vad_500": {"type": "server_vad", "silence_duration_ms": 500},
    "semantic_low": {"type": "semantic_vad", "eagerness": "low"},
    "semantic_medium": {"type": "semantic_vad", "eagerness": "medium"},
    "semantic_high": {"type": "semantic_vad", "eagerness": "high"},
}
SETTINGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{name: ("silero", asked) for name, asked in SILERO_SETTINGS.items()},
    **{f"{name}_webrtc": ("webrtc", asked) for name, asked in SILERO_SETTINGS.items()},
}
PARROTS = ("server_vad_500", "semantic_low", "semantic_medium")  # high is as the first
CODEC_S = 0.0065  # that Opus holds back
TARGETS = (
    Target("pauses_sound_into_resumed_speech", "=", 0, "times"),
    *(Target(f"end_of_turn_{name}_p50", ">", 0, "ms") for name in SETTINGS),
    *(Target(f"early_ends_{name}", "≥", 0, "of all pauses") for name in SETTINGS),
)
PARROT_TARGETS = (Target("pauses_parrot_into_resumed_speech", "=", 0, "times"),)


def measurements() -> list[Measurement]:
    return [
        Measurement("pauses", TARGETS, measure),
        Measurement("pauses_parrot", PARROT_TARGETS, measure_parrot),
    ]


@dataclass
class Heard:
    """What became of one clip. Seconds from its begin, as packets arrive."""

    clip: Clip
    ends: list[float] = field(default_factory=list)  # of turns
    answers: list[float] = field(default_factory=list)  # their first sounds
    resumed: int = 0  # answers given up before that

    def early(self) -> int:
        """Pauses that were taken for the end."""
        return sum(any(_within(at, pause) for at in self.ends) for pause in self.clip.pauses)

    def end_of_turn_s(self) -> float:
        """From the last sound of speech to the end of the turn."""
        last = self.clip.speech[-1].end
        return next(at - last for at in self.ends if at > last)

    def into_speech(self) -> list[float]:
        """First sounds while he speaks again, and his packets tell it."""
        return [
            at
            for at in self.answers
            if any(_told(each.start) <= at < each.end for each in self.clip.speech[1:])
        ]


def measure() -> Findings:
    table = {name: _row(make(vad), Settings.of(asked)) for name, (vad, asked) in SETTINGS.items()}
    values = {
        "pauses_sound_into_resumed_speech": sum(
            row["sound_into_resumed_speech"] for row in table.values()
        )
    }
    for name, row in table.items():
        values[f"end_of_turn_{name}_p50"] = row["end_of_turn_ms"]["p50"]
        values[f"early_ends_{name}"] = row["early_ends"]
    detail = {
        "clips": len(clips()),
        "pauses": sum(len(clip.pauses) for clip in clips()),
        "conversations": len(clips()) * len(THINK_S) * len(SETTINGS),
        "settings": table,
    }
    return Findings(values, detail)


def measure_parrot() -> Findings:
    stock = Stock("silero", spare=1)
    heard = {
        name: [converse(clip, stock, SILERO_SETTINGS[name]) for clip in clips()] for name in PARROTS
    }
    into_speech = [each.into_speech() for all_ in heard.values() for each in all_]
    return Findings(
        {"pauses_parrot_into_resumed_speech": sum(map(len, into_speech))},
        {"early_ends": {name: _share_of_early_ends(all_) for name, all_ in heard.items()}},
    )


def _row(vad: Vad, settings: Settings | None) -> dict[str, Any]:
    assert settings is not None
    told = [hear(clip, vad, settings) for clip in clips()]
    pairs = list(zip(clips(), told, strict=True))
    stated = [answer(clip, packets, STATED_THINK_S) for clip, packets in pairs]
    latencies = [each.end_of_turn_s() * 1000 for each in stated]
    into_speech, unless_it_waits = (
        sum(
            len(answer(clip, packets, think_s, waits).into_speech())
            for clip, packets in pairs
            for think_s in THINK_S
        )
        for waits in (True, False)
    )
    return {
        "early_ends": _share_of_early_ends(stated),
        "answers_given_up": sum(each.resumed for each in stated),
        "end_of_turn_ms": {
            f"p{share}": round(float(np.percentile(latencies, share))) for share in (50, 95)
        },
        "sound_into_resumed_speech": into_speech,
        "and_if_answers_did_not_wait": unless_it_waits,
    }


def _share_of_early_ends(heard: Sequence[Heard]) -> float:
    pauses = sum(len(each.clip.pauses) for each in heard)
    return round(sum(each.early() for each in heard) / pauses, 3)


@dataclass(frozen=True)
class Packet:
    """What a detector makes of one."""

    turns: Sequence[Turn]
    suspects: bool


def hear(clip: Clip, vad: Vad, settings: Settings) -> list[Packet]:
    """The clip, packet by packet. It does not depend on what is answered: the caller has
    headphones."""
    vad.reset()
    detector = Detector(vad)
    detector.settings = settings
    size = round(PACKET_S * RATE)
    return [
        Packet(
            detector.hear(clip.samples[at : at + size].tobytes(), False, (at + size) / RATE),
            detector.suspects,
        )
        for at in range(0, len(clip.samples) - size + 1, size)
    ]


def answer(clip: Clip, packets: Iterable[Packet], think_s: float, waits: bool = True) -> Heard:
    """What a backend makes of it that thinks for so long, and then waits while speech is
    suspected."""
    heard, due = Heard(clip), None
    for number, packet in enumerate(packets, 1):
        now = number * PACKET_S
        for turn in packet.turns:
            if isinstance(turn, Stopped):
                heard.ends.append(now)
                due = now + think_s
            elif due is not None:
                heard.resumed += 1
                due = None
        if due is not None and now + SLOT_S >= due and not (waits and packet.suspects):
            heard.answers.append(now + SLOT_S)
            due = None
    return heard


def converse(clip: Clip, stock: Stock, asked: Mapping[str, Any], **parrot: Any) -> Heard:
    """With the parrot. Speech is where it is once it is decoded."""
    session = {"audio": {"input": {"turn_detection": asked}}}
    line = ParrotLine(stock, session, think_s=STATED_THINK_S, **parrot)
    encoder, size = Encoder(RATE), round(PACKET_S * RATE)
    for at in range(0, len(clip.samples) - size + 1, size):
        line.step(encoder.encode(clip.samples[at : at + size].tobytes()))
    line.end()
    later = tuple(Span(each.start + CODEC_S, each.end + CODEC_S) for each in clip.speech)
    sounds = [samples is not None for _, samples in line.frames]
    return Heard(
        replace(clip, speech=later),
        ends=[at for kind, at in line.told if kind == _STOPPED],
        answers=[
            at
            for (at, _), before, sound in zip(line.frames[1:], sounds, sounds[1:], strict=False)
            if sound and not before
        ],
    )


def _told(start_s: float) -> float:
    """When the packet arrives that tells of speech from `start_s` on."""
    return ceil((start_s + TELLS_S) / PACKET_S - 1e-9) * PACKET_S


def _within(at: float, pause: Span) -> bool:
    return pause.start < at <= _told(pause.end)
