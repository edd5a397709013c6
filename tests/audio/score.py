"""What a probe client plays: packets of Opus, each with its moment.

Pure. A score begins as a faithful one and is then harmed: `without`, `late`, `doubled`, `paused`,
`drifting` each return a new score. Sequence numbers and timestamps wrap early in every score.
"""

import json
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from tests.lab.ear import Row
from tests.lab.speech import RATE
from transceiver.audio.opus import Encoder

FIRST_SEQUENCE = 0x10000 - 20
FIRST_TIMESTAMP = 0x100000000 - 30 * 960


class Note(NamedTuple):
    at: float  # seconds after the beginning at which it is sent
    sequence: int
    timestamp: int  # ticks of 48 kHz
    payload: bytes
    marker: bool = False


Score = Sequence[Note]


def encode(samples: Row, *, frame_ms: int = 20, fec: bool = False) -> list[Note]:
    """Samples at 48 kHz, -1..1, as packets of `frame_ms`; what fills no packet is left out."""
    encoder = Encoder(RATE, fec=fec)
    pcm = np.round(np.clip(samples, -1, 1) * 32767).astype("<i2")
    size = RATE * frame_ms // 1000
    return [
        Note(
            number * frame_ms / 1000,
            (FIRST_SEQUENCE + number) & 0xFFFF,
            (FIRST_TIMESTAMP + number * size) & 0xFFFFFFFF,
            encoder.encode(pcm[number * size : (number + 1) * size].tobytes()),
            number == 0,
        )
        for number in range(len(pcm) // size)
    ]


def without(score: Score, numbers: Container[int]) -> list[Note]:
    """Lost on the way: packets counted from 0."""
    return [note for number, note in enumerate(score) if number not in numbers]


def late(score: Score, numbers: Container[int], by_s: float) -> list[Note]:
    """These come `by_s` seconds later, so that others overtake them."""
    moved = [
        note._replace(at=note.at + by_s) if number in numbers else note
        for number, note in enumerate(score)
    ]
    return sorted(moved, key=lambda note: note.at)


def doubled(score: Score, numbers: Container[int], after_s: float = 0.0) -> list[Note]:
    """These come twice."""
    again = [
        note._replace(at=note.at + after_s)
        for number, note in enumerate(score)
        if number in numbers
    ]
    return sorted([*score, *again], key=lambda note: note.at)


def paused(score: Score, start_s: float, end_s: float) -> list[Note]:
    """Nothing is sent from `start_s` to `end_s`, as by a muted client or one with DTX: timestamps
    jump, sequence numbers go on (RFC 3551 section 4.1)."""
    kept = [note for note in score if not start_s <= note.at < end_s]
    return [
        note._replace(
            sequence=(score[0].sequence + number) & 0xFFFF,
            marker=number == 0 or kept[number - 1].at < start_s <= note.at,
        )
        for number, note in enumerate(kept)
    ]


def drifting(score: Score, ppm: float) -> list[Note]:
    """The client's clock runs fast by `ppm` millionths: its packets come sooner."""
    return [note._replace(at=note.at / (1 + ppm * 1e-6)) for note in score]


def in_order(score: Score) -> list[Note]:
    """Each packet once, by its number, which may wrap; SRTP takes them so."""
    first = min(score, key=lambda note: note.at).sequence
    once = {note.sequence: note for note in score}
    return sorted(once.values(), key=lambda note: (note.sequence - first + 0x8000) & 0xFFFF)


def to_json(score: Score) -> str:
    """For `from_json`, in another process."""
    return json.dumps([(*note[:3], note.payload.hex(), note.marker) for note in score])


def from_json(text: str) -> list[Note]:
    """Raises `ValueError` for what is no score."""
    return [
        Note(at, sequence, timestamp, bytes.fromhex(payload), marker)
        for at, sequence, timestamp, payload, marker in json.loads(text)
    ]


def carries_fec(payload: bytes) -> bool:
    """Whether a mono packet of one 10 or 20 ms frame carries a copy of the one before it.

    After the table of contents SILK's first two bits are "voice" and "copy follows", coded with
    even odds and so readable in the clear (RFC 6716 sections 3.1, 4.2.3, 4.2.4); CELT has none.
    """
    return len(payload) > 1 and payload[0] >> 7 == 0 and bool(payload[1] & 0x40)
