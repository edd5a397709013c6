"""Which flows have to be written to Redis, or kept there: told from what a sweep sees. Pure.

A flow is due once it is confirmed, again when its SSRC is known, and from then on every 40 s,
each at a time of its own, if its client spoke meanwhile; young flows too, for the first writing may
have met a Redis that was away. Nothing is kept of old flows: Redis says itself which of them it has
not.
"""

from typing import NamedTuple

import numpy as np

from relayctl import cached_flow
from relayctl.control.flow_slice import Bools, Column, FlowSlice
from relayctl.flow import FlowKey, Prefixes, unpack_flow

SPREAD = 37  # units between two refreshes of a flow, 40 s
RECENT = 24  # units after its birth in which a flow is looked at in every pass
MAX_RECENT = 262144  # flows whose writing is remembered that long


class Due(NamedTuple):
    """A flow for Redis; `value` as `cached_flow` encodes it. `is_new`: it counts whatever Redis
    has; else it is only kept, or written where Redis has nothing."""

    key: FlowKey
    value: bytes
    ssrc: int
    is_new: bool


class DueFlows:
    """Stamps are in units."""

    def __init__(self, prefixes: Prefixes, now: int) -> None:
        self._prefixes = prefixes
        self._before = self._now = now
        self._written: dict[bytes, tuple[int, int]] = {}  # key → born, SSRC

    def begin(self, now: int) -> None:
        """A pass begins."""
        self._before, self._now = self._now, now
        oldest = now - RECENT
        while self._written:
            key, (born, _) = next(iter(self._written.items()))
            if born >= oldest and len(self._written) <= MAX_RECENT:
                break
            del self._written[key]

    def see(self, flows: FlowSlice, alive: Bools) -> list[Due]:
        """What is due of a slice."""
        age = {name: self._now - flows.values[name].astype(np.int64) for name in _STAMPS}
        mine = alive & flows.confirmed()
        recent = mine & (age["born"] <= RECENT)
        turn = mine & (age["seen_up"] <= SPREAD) & self._turns(flows)
        found, fresh = list[Due](), set[int]()
        for at in np.flatnonzero(recent).tolist():
            key, row = bytes(flows.key(at)), flows.values[at]
            state = int(row["born"]), int(row["ssrc"])
            if self._written.get(key) != state:
                self._written.pop(key, None)
                self._written[key] = state
                found.append(self._due(flows, at, is_new=True))
                fresh.add(at)
        kept = (at for at in np.flatnonzero(turn).tolist() if at not in fresh)
        found += [self._due(flows, at, is_new=False) for at in kept]
        return found

    def _turns(self, flows: FlowSlice) -> Bools:
        """Whose time of the 40 s fell between the last pass and this one."""
        passed = self._now - self._before
        packed = flows.keys.view(np.uint8).reshape(len(flows), -1).astype(np.uint32)
        weights = np.arange(1, packed.shape[1] + 1, dtype=np.uint32) * 2654435761 % 65521
        slots: Column = packed @ weights.astype(np.uint32) % SPREAD
        return np.asarray((self._now - slots.astype(np.int64)) % SPREAD < passed)

    def _due(self, flows: FlowSlice, at: int, *, is_new: bool) -> Due:
        flow = unpack_flow(flows.values[at].tobytes(), self._prefixes)
        return Due(flows.key(at), cached_flow.encode(flow), flow.ssrc, is_new)


_STAMPS = ("born", "seen_up")
