"""One timer wheel for all calls of a process: each is woken when something is due, and only then.

Pure: `now` is any monotonic clock in seconds. A turn costs what is due in it, however many calls
wait. A wake-up may come a turn late, never early; who is woken says when it is due next.
"""

import math
from typing import Generic, TypeVar

K = TypeVar("K")

TURN_S = 0.01


class Wheel(Generic[K]):
    """Keys are hashable; each waits for one moment at most."""

    def __init__(self) -> None:
        self._slots: dict[int, dict[K, None]] = {}  # those due by the end of a turn, by its number
        self._slot_of: dict[K, int] = {}
        self._turned = -1  # the last turn that was taken

    def __len__(self) -> int:
        return len(self._slot_of)

    def plan(self, key: K, when: float) -> None:
        """Wake `key` at `when`, and not at the moment planned before; math.inf = never."""
        slot = None if when == math.inf else max(math.ceil(when / TURN_S), self._turned + 1)
        if slot == self._slot_of.get(key):
            return
        self.cancel(key)
        if slot is not None:
            self._slot_of[key] = slot
            self._slots.setdefault(slot, {})[key] = None

    def cancel(self, key: K) -> None:
        slot = self._slot_of.pop(key, None)
        if slot is None:
            return
        waiting = self._slots[slot]
        del waiting[key]
        if not waiting:
            del self._slots[slot]

    def turn(self, now: float) -> list[K]:
        """Those that are due, the longest overdue first; they wait for nothing any more."""
        last = math.floor(now / TURN_S)
        due: list[K] = []
        for slot in self._passed(last):
            waiting = self._slots.pop(slot)
            for key in waiting:
                del self._slot_of[key]
            due += waiting
        self._turned = max(self._turned, last)
        return due

    def _passed(self, last: int) -> list[int]:
        turns = range(self._turned + 1, last + 1)
        if len(turns) <= len(self._slots):
            return [slot for slot in turns if slot in self._slots]
        return sorted(slot for slot in self._slots if slot <= last)
