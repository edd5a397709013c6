"""Plain counters that the packet path writes; `metrics.py` shows them. Pure."""

from collections import Counter
from dataclasses import dataclass, field

from transceiver.lateness import Lateness


@dataclass(slots=True)
class Counts:
    """Totals of one process since it started."""

    dropped: Counter[str] = field(default_factory=Counter)  # datagrams, by reason
    ended: Counter[str] = field(default_factory=Counter)  # calls, by reason
    refused: Counter[str] = field(default_factory=Counter)  # calls that were not made, by reason
    packets_up: int = 0  # RTP, client to us
    packets_down: int = 0
    bytes_up: int = 0  # RTP payload
    bytes_down: int = 0
    lost: int = 0  # RTP of clients that never came, of ended calls
    moves: int = 0  # of a call to another path
    uplink: Counter[str] = field(default_factory=Counter)  # statistics of ended calls' backends
    turns: int = 0  # of clients that spoke
    interruptions: int = 0  # replies that were silenced
    responses: Counter[str] = field(default_factory=Counter)  # that are over, by status
    faults: Counter[str] = field(default_factory=Counter)  # errors told to clients, by code
    answers: Counter[int] = field(default_factory=Counter)  # first sounds, by `ANSWER_BUCKETS`
    registrations: Counter[str] = field(default_factory=Counter)  # tries, by result
    records: Counter[str] = field(default_factory=Counter)  # writings, by result
    resumes: Counter[str] = field(default_factory=Counter)  # tries, by result
    answers_s: float = 0.0  # that they took, together
    lateness: Lateness = field(default_factory=Lateness)

    def drop(self, reason: str) -> None:
        self.dropped[reason] += 1
