"""What an ear hears of a call: packets with their arrival times become samples with theirs.

Pure. Samples are 48 kHz, -1..1, on the line of the RTP timestamps; where no packet came they are
silence, for an ear that concealed would hide what the sender left unrepaired. `Heard` knows each
sample's moment for an ear that plays at arrival; `through_buffer` plays as a client does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tests.lab.ear import Row
from tests.lab.speech import RATE
from transceiver.audio.opus import Decoder

_FULL_SCALE = 32768
_LONGEST_S = 4000  # of a recording; a timestamp beyond is none of this call


class Arrival(NamedTuple):
    at: float  # seconds, any clock
    sequence: int
    timestamp: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    samples: Row  # index 0 = the first timestamp
    at: Row  # seconds at which an ear without a buffer hears each sample; NaN where nothing came

    @property
    def came(self) -> Row:
        """Which samples came at all."""
        return ~np.isnan(self.at)


def listen(arrivals: Iterable[Arrival], first_timestamp: int | None = None) -> Heard:
    """Decode each packet once, in the order of timestamps. Raises ValueError for a timestamp
    outside the call. `first_timestamp`: of sample 0; None = that of the first arrival."""
    arrivals = list(arrivals)
    if first_timestamp is None:
        first_timestamp = arrivals[0].timestamp if arrivals else 0
    placed = sorted(
        {_offset(each.timestamp, first_timestamp): each for each in arrivals[::-1]}.items()
    )
    decoder = Decoder(RATE)
    pieces = [(at, each.at, _samples(decoder.decode(each.payload))) for at, each in placed]
    size = max((at + len(piece) for at, _, piece in pieces), default=0)
    samples, moments = np.zeros(size), np.full(size, np.nan)
    for at, moment, piece in pieces:
        samples[at : at + len(piece)] = piece
        moments[at : at + len(piece)] = moment + np.arange(len(piece)) / RATE
    return Heard(samples, moments)


def through_buffer(heard: Heard, depth_s: float) -> Row:
    """Play with a buffer: sample n sounds `depth_s` and n samples after the arrival of the first
    one that came. Index 0 is that arrival; what is late by then is silence."""
    came = heard.came
    if not came.any():
        return np.zeros(0)
    first = int(np.argmax(came))
    due = heard.at[first] + depth_s + (np.arange(len(heard.samples)) - first) / RATE
    in_time = np.less_equal(heard.at, due, where=came, out=np.zeros(len(came), bool))
    played = np.where(in_time, heard.samples, 0.0)[first:]
    return np.concatenate([np.zeros(round(depth_s * RATE)), played])


def _offset(timestamp: int, first: int) -> int:
    ahead = (timestamp - first) & 0xFFFFFFFF
    if ahead >= _LONGEST_S * RATE:
        raise ValueError(f"timestamp {timestamp} lies outside of a call that began at {first}")
    return ahead


def _samples(pcm: bytes) -> Row:
    return np.frombuffer(pcm, np.int16) / _FULL_SCALE
