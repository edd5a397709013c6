"""Collects SSRC hints from a sweep: confirmed flows with an SSRC, the newest of each one. Pure.

There may be more of them than the packet process keeps: those with the smallest SSRC go, so that
every pass chooses the same ones. Hints are rows in the order of their SSRC; few ever become
objects.
"""

import numpy as np

from relayctl.control.flow_slice import Bools, Column, FlowSlice
from relayctl.flow import FlowKey
from relayctl.hints import CAPACITY

_ROW = np.dtype([("ssrc", "u4"), ("born", "u4"), ("key", "S25")])  # IP version, then the map's key
_KEY_SIZES = {4: 8, 6: 24}

NONE: Column = np.empty(0, _ROW)


class HintTable:
    """What one pass finds."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._rows = NONE
        self._new: list[Column] = []
        self._count = 0  # of new rows
        self._limit = 0xFFFFFFFF  # the largest SSRC that has a chance

    def see(self, flows: FlowSlice, alive: Bools) -> None:
        ssrc = flows.values["ssrc"].astype(np.uint32)
        (at,) = np.nonzero(alive & flows.confirmed() & (ssrc > 0) & (ssrc <= self._limit))
        if not len(at):
            return
        rows = np.empty(len(at), _ROW)
        rows["ssrc"], rows["born"] = ssrc[at], flows.values["born"][at]
        key = np.zeros((len(at), _ROW["key"].itemsize), np.uint8)
        size = _KEY_SIZES[flows.version]
        key[:, 0] = flows.version
        key[:, 1 : 1 + size] = flows.keys.view(np.uint8).reshape(-1, size)[at]
        rows["key"] = key.view(_ROW["key"])[:, 0]
        self._new.append(rows)
        self._count += len(at)
        if self._count > self._capacity:
            self._settle()

    def result(self) -> Column:
        """Rows of different SSRCs, which rise."""
        self._settle()
        return self._rows

    def _settle(self) -> None:
        rows = np.concatenate([self._rows, *self._new])
        newest_first = rows["ssrc"].astype(np.uint64) << 32 | ~rows["born"]
        rows = rows[np.argsort(newest_first)]
        is_first = np.ones(len(rows), bool)
        is_first[1:] = rows["ssrc"][1:] != rows["ssrc"][:-1]
        self._rows = rows[is_first][: self._capacity]
        if len(self._rows) == self._capacity:
            self._limit = int(self._rows["ssrc"][-1])
        self._new, self._count = [], 0


def difference(old: Column, new: Column) -> tuple[Column, Column]:
    """Rows to set and rows to remove, to get from `old` to `new`."""
    where, is_known = _find(old, new)
    is_known[is_known] = old["key"][where[is_known]] == new["key"][is_known]
    return new[~is_known], old[~_find(new, old)[1]]


def changed(old: Column, added: Column, removed: Column) -> Column:
    """What `old` becomes."""
    for gone in (removed, added):
        old = old[~_find(gone, old)[1]]
    rows = np.concatenate([old, added])
    return rows[np.argsort(rows["ssrc"])]


def _find(rows: Column, wanted: Column) -> tuple[Column, Bools]:
    """Where each wanted SSRC stands, and whether it does."""
    where = np.searchsorted(rows["ssrc"], wanted["ssrc"])
    is_there = where < len(rows)
    is_there[is_there] = rows["ssrc"][where[is_there]] == wanted["ssrc"][is_there]
    return where, is_there


def hints(rows: Column) -> list[tuple[int, FlowKey]]:
    return [
        (ssrc, FlowKey.read(key[1:].ljust(_KEY_SIZES[key[0]], b"\0")))
        for ssrc, key in zip(rows["ssrc"].tolist(), rows["key"].tolist(), strict=True)
    ]
