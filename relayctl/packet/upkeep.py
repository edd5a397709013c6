"""What the packet process owes its flows once they are installed: `new` ones end, and a token keeps
no more than its share.

It knows every flow that it installed itself, so nobody has to search a table of a million for the
few that nobody confirmed. Whole passes over the table are the control process's business.
"""

import struct
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from relayctl.datapath.base import FlowTable
from relayctl.flow import (
    CONFIRMED,
    NEW_LIFE,
    VALUE,
    Expiry,
    Flow,
    FlowKey,
    State,
    expiry,
)
from relayctl.packet.token_flows import surplus
from relayctl.packet.view import PacketView

PURGE = 1024  # one of so many tokens is looked at in each beat

_SUMMARY = struct.Struct("=8s15xB24xI20x")  # of a packed flow: token, flags, born

assert _SUMMARY.size == VALUE.size


_NewFlow = tuple[int, bytes, bytes]
"""When to look at it (a stamp), token prefix, key. Plain: no garbage collection looks at those."""


class Fresh(Protocol):
    """A flow that was installed just now."""

    @property
    def key(self) -> bytes: ...

    @property
    def token(self) -> bytes: ...


class Upkeep:
    """Remembers what was installed. Stamps are in units, `now` is CLOCK_MONOTONIC in ns."""

    def __init__(self, view: PacketView, flows: FlowTable) -> None:
        self._view = view
        self._flows = flows
        self._new: deque[_NewFlow] = deque()  # in the order of `look_at`
        self.displaced = 0  # flows that went since their token had more than its share

    def adopt(self) -> None:
        """Take over the flows that the table holds already."""
        found: list[_NewFlow] = []
        for keys, values in self._flows.batches():
            size = len(keys) * VALUE.size // len(values)
            each = [keys[at : at + size] for at in range(0, len(keys), size)]
            summaries = list(_SUMMARY.iter_unpack(values))
            tokens = self._view.tokens
            tokens.adopt((token, key) for (token, *_), key in zip(summaries, each, strict=True))
            found += (
                (born + NEW_LIFE + 1, token, key)
                for (token, flags, born), key in zip(summaries, each, strict=True)
                if not flags & CONFIRMED
            )
        self._new.extend(sorted(found))

    def installed(self, key: FlowKey, flow: Flow) -> None:
        plain = bytes(key)  # which garbage collections need not look at, a `FlowKey` they would
        self._view.tokens.add(flow.token, plain)
        if flow.state is State.NEW:
            self._new.append((flow.born + NEW_LIFE + 1, flow.token, plain))

    def opened(self, fresh: Iterable[Fresh]) -> None:
        """New flows were made now. Their tokens are known already."""
        look_at = self._view.stamp + NEW_LIFE + 1
        self._new.extend([(look_at, each.token, each.key) for each in fresh])

    def displace(self, key: FlowKey, now: int) -> None:
        """Delete a flow; its endpoint's next packet must not make it again."""
        self._view.bury(key, now)
        self.displaced += self._flows.delete(key)

    def beat(self, stamp: int, now: int) -> None:
        self._view.pending.purge(now)
        while self._new and self._new[0][0] <= stamp:
            _, token, key = self._new.popleft()
            self._look_again(token, FlowKey.read(key), stamp, now)
        tokens = self._view.tokens
        tokens.purge(self._flows.get, len(tokens) // PURGE + 1)

    def _look_again(self, token: bytes, key: FlowKey, stamp: int, now: int) -> None:
        flow = self._flows.get(key)
        if flow is not None and expiry(flow, stamp) is Expiry.UNCONFIRMED:
            self._flows.delete(key)
            flow = None
        if flow is None:
            self._view.tokens.forget(token, key)
        elif flow.state is State.CONFIRMED:
            for each in surplus(self._view.crowd(flow.token), stamp):
                self.displace(each, now)
