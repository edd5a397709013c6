"""Takeovers under way: which endpoint wants a live flow, and the checks whose answers prove it.

Pure. Whoever copied a token can send it in a client's name, so a token alone moves nothing: the
other endpoint checks the client (RFC 8445 section 7.3.1.4), and only a client that is really there
can answer with the 96 random bits of that check.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from relayctl.flow import FlowKey
from relayctl.wire.address import Address

LIFE_NS = 5_000_000_000
CAPACITY = 4096  # takeovers at a time
CHECKS = 8  # transaction ids kept of one takeover, the latest


class Target(NamedTuple):
    """Where an authentic token leads."""

    endpoint: Address
    cluster: int
    token: bytes  # its first 8 characters, which the flow keeps


@dataclass(slots=True)
class _Takeover:
    target: Target
    deadline: int  # CLOCK_MONOTONIC, ns
    checks: deque[bytes]  # ids of the endpoint's own Binding requests


class Takeovers:
    """At most one for each flow, the latest. Times are CLOCK_MONOTONIC in ns."""

    def __init__(self) -> None:
        self._by_flow: dict[FlowKey, _Takeover] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._by_flow)

    def __iter__(self) -> Iterator[FlowKey]:
        return iter(self._by_flow)

    def contend(self, key: FlowKey, target: Target, now: int) -> None:
        """An authentic token of another endpoint came from the client of the flow `key`."""
        known = self._by_flow.pop(key, None)
        checks: deque[bytes] = deque(maxlen=CHECKS)
        if known is not None and known.target.endpoint == target.endpoint:
            checks = known.checks  # the client repeats its request
        self._by_flow[key] = _Takeover(target, now + LIFE_NS, checks)
        if len(self._by_flow) > CAPACITY:
            del self._by_flow[next(iter(self._by_flow))]

    def wanted_by(self, key: FlowKey, now: int) -> Address | None:
        """The endpoint that wants this flow."""
        takeover = self._live(key, now)
        return takeover.target.endpoint if takeover else None

    def note(self, key: FlowKey, transaction: bytes) -> None:
        """The endpoint sends the client a check."""
        checks = self._by_flow[key].checks
        if transaction not in checks:  # it repeats a check a few times
            checks.append(transaction)

    def proven(self, key: FlowKey, transaction: bytes, now: int) -> Target | None:
        """Whose the flow is from here on, if the client answered that check."""
        takeover = self._live(key, now)
        return takeover.target if takeover and transaction in takeover.checks else None

    def end(self, key: FlowKey) -> None:
        self._by_flow.pop(key, None)

    def purge(self, now: int) -> None:
        """Forget those that are over."""
        for key in list(self._by_flow):
            if self._live(key, now) is not None:
                return

    def _live(self, key: FlowKey, now: int) -> _Takeover | None:
        takeover = self._by_flow.get(key)
        if takeover is not None and takeover.deadline <= now:
            del self._by_flow[key]
            return None
        return takeover
