"""Orphans that wait until Redis was asked for their client, and what it said lately.

Pure. Nothing waits for long, and every table has a bound: orphans are what any stranger can send.
Times are CLOCK_MONOTONIC in ns.
"""

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from relayctl import cached_flow
from relayctl.flow import FlowKey
from relayctl.reason import Reason
from relayctl.wire.address import Address

WAIT_NS = 50_000_000  # an answer later than this still installs a flow, without the packets
MAX_WAITING = 4096  # clients
MAX_HELD = 4  # packets of one client
MAX_SIZE = 1500  # bytes of one packet
ABSENT_NS = 1_000_000_000
MAX_ABSENT = 65536
HINTED_NS = 2_000_000_000
MAX_HINTED = 4096


class Orphan(Protocol):
    """A packet without a flow."""

    @property
    def key(self) -> FlowKey: ...

    @property
    def payload(self) -> bytes: ...


O = TypeVar("O", bound=Orphan)  # noqa: E741


@dataclass(slots=True)
class _Waiting(Generic[O]):
    ssrc: int
    until: int
    held: list[O] = field(default_factory=list)


class Lookups(Generic[O]):
    """What waits, by client, the oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[FlowKey, _Waiting[O]] = {}
        self._absent: dict[tuple[FlowKey, int], int] = {}  # until when
        self._hinted: dict[tuple[int, int], tuple[Address, int]] = {}  # endpoint, until when
        self._unasked: list[bytes] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def hold(self, orphan: O, ssrc: int, now: int) -> Reason | None:
        """Keep the packet until Redis was asked; `ssrc` 0: none. Or why it is not kept."""
        key = orphan.key
        if self._absent.get((key, ssrc), 0) > now:
            return Reason.SLOW_ORPHAN
        waiting = self._waiting.get(key)
        if len(orphan.payload) > MAX_SIZE or (
            len(waiting.held) >= MAX_HELD if waiting else len(self._waiting) >= MAX_WAITING
        ):
            return Reason.SLOW_LOOKUPS_FULL
        if waiting is None:
            waiting = self._waiting[key] = _Waiting(ssrc, now + WAIT_NS)
            self._unasked.append(cached_flow.pack_wanted(key, ssrc))
        waiting.held.append(orphan)
        return None

    def unasked(self) -> list[bytes]:
        """What to ask for, as records of `cached_flow.WANTED`; each is given once."""
        unasked, self._unasked = self._unasked, []
        return unasked

    def release(self, key: FlowKey, now: int) -> list[O]:
        """Redis answered, or did not: the packets of this client, which nobody asks for again at
        once. None wait where the answer came late."""
        waiting = self._waiting.pop(key, None)
        if waiting is None:
            return []
        self._absent.pop((key, waiting.ssrc), None)
        self._absent[key, waiting.ssrc] = now + ABSENT_NS
        if len(self._absent) > MAX_ABSENT:
            del self._absent[next(iter(self._absent))]
        return waiting.held

    def late(self, now: int) -> list[O]:
        """Packets that waited long enough."""
        found: list[O] = []
        while self._waiting:
            key, waiting = next(iter(self._waiting.items()))
            if waiting.until > now:
                break
            found += self.release(key, now)
        return found

    def deadline(self) -> int | None:
        """When `late` has something next."""
        return next((waiting.until for waiting in self._waiting.values()), None)

    def learn(self, vip: int, ssrc: int, endpoint: Address, now: int) -> None:
        """Another relay knew this RTP source: its endpoint, for a while."""
        self._hinted.pop((vip, ssrc), None)
        self._hinted[vip, ssrc] = endpoint, now + HINTED_NS
        if len(self._hinted) > MAX_HINTED:
            del self._hinted[next(iter(self._hinted))]

    def hinted(self, vip: int, ssrc: int, now: int) -> Address | None:
        """The endpoint of an RTP source that another relay knew."""
        endpoint, until = self._hinted.get((vip, ssrc), (None, 0))
        return endpoint if until > now else None
