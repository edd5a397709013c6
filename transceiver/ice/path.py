"""The paths of one call: what is known of each address that the client was heard from.

Sans-IO. A path is *proven* when the client answered a check of ours on it; no other path is ever
sent media. The table is bounded: what a client cannot keep alive makes room.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from transceiver.ice.event import PathKey
from transceiver.ice.stun import Credentials

NEVER = -math.inf
MAX_PATHS = 16
STALE_S = 60.0  # a browser asks its spare path every 25 s: two in a row may get lost


@dataclass(slots=True, eq=False)
class Ask:
    """A transaction of ours that a response can still match."""

    credentials: Credentials
    sent: float
    repeated: bool = False  # then a response has no certain round trip (Karn's rule)


@dataclass(slots=True, eq=False)
class Round:
    """The transmissions of one check; kept when it is over, to space the next one."""

    credentials: Credentials
    consent: bool
    began: float
    pause: float = math.inf  # between consent checks; others have a pace of their own
    transaction_id: bytes = b""
    datagram: bytes = b""
    sent: int = 0
    due: float = math.inf

    @property
    def over(self) -> bool:
        return self.due == math.inf


@dataclass(slots=True, eq=False)
class Path:
    """Times are of the agent's clock, in seconds; `NEVER` = not yet."""

    key: PathKey
    heard: float = NEVER  # last authentic packet
    media: float = NEVER  # last authentic packet that shows where the client sends
    nominated: float = NEVER  # last USE-CANDIDATE
    nomination_waits: bool = False  # nominated, but not proven yet
    proof: str | None = None  # our ufrag of the check that was answered here
    lost: float = NEVER  # when three consents had gone unanswered
    rtt: float | None = None  # seconds
    consent_due: float = math.inf
    round: Round | None = None
    asks: dict[bytes, Ask] = field(default_factory=dict)

    @property
    def asking(self) -> bool:
        return self.round is not None and not self.round.over

    @property
    def is_lost(self) -> bool:
        """Three consents unanswered, and the client does not send from there either."""
        return self.lost > self.media


class Paths:
    """At most `MAX_PATHS`, by key."""

    def __init__(self) -> None:
        self._by_key: dict[PathKey, Path] = {}
        self.get = self._by_key.get  # once per media packet: no call in between
        self.pop = self._by_key.pop

    def __iter__(self) -> Iterator[Path]:
        return iter(list(self._by_key.values()))

    def add(self, key: PathKey) -> Path:
        path = self._by_key[key] = Path(key)
        return path

    def surplus(self, selected: Path | None) -> Path | None:
        """Who has to go before one more is added: the idle one unheard for longest, and one
        that never proved itself before one that did."""
        if len(self._by_key) < MAX_PATHS:
            return None
        idle = [p for p in self if p is not selected and (p.proof or not p.asking)]
        return min(idle, key=lambda path: (path.proof is not None, path.heard))

    def unproven_asked(self) -> int:
        """How many addresses that proved nothing yet are being asked."""
        return sum(1 for path in self if path.proof is None and path.asking)
