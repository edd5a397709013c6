"""One timer wheel for all calls of a process: each is woken when something is due, and only then.

Pure: `now` is any monotonic clock in seconds. A turn costs what is due in it, however many calls
wait. A wake-up may come a turn late, never early; who is woken says when it is due next.
"""

import heapq
import math
from typing import Generic, TypeVar

K = TypeVar("K")

TURN_S = 0.01


class Wheel(Generic[K]):
    """Keys are hashable; each waits for one moment at most."""

    def __init__(self) -> None:
        self._slots: dict[int, dict[K, None]] = {}  # those due by the end of a turn, by its number
        self._numbers: list[int] = []  # of the slots, as a heap
        self._slot_of: dict[K, int] = {}
        self._turned = -1  # the last turn that was taken

    def __len__(self) -> int:
        return len(self._slot_of)

    @property
    def next(self) -> float:
        """When to turn it; math.inf = nobody waits. It may be for nothing."""
        return self._numbers[0] * TURN_S if self._numbers else math.inf

    def plan(self, key: K, when: float) -> None:
        """Wake `key` at `when`, and not at the moment planned before; math.inf = never, -math.inf =
        at once."""
        slot: int | None = self._turned + 1
        if math.isfinite(when):
            slot = max(math.ceil(when / TURN_S), self._turned + 1)
        elif when > 0:
            slot = None
        if slot == self._slot_of.get(key):
            return
        self.cancel(key)
        if slot is not None:
            self._slot_of[key] = slot
            if slot not in self._slots:
                self._slots[slot] = {}
                heapq.heappush(self._numbers, slot)
            self._slots[slot][key] = None

    def cancel(self, key: K) -> None:
        slot = self._slot_of.pop(key, None)
        if slot is not None:
            del self._slots[slot][key]  # an empty slot stays until its turn: few can be ahead

    def turn(self, now: float) -> list[K]:
        """Those that are due, the longest overdue first; they wait for nothing any more."""
        last = math.floor(now / TURN_S)
        due: list[K] = []
        while self._numbers and self._numbers[0] <= last:
            waiting = self._slots.pop(heapq.heappop(self._numbers))
            for key in waiting:
                del self._slot_of[key]
            due += waiting
        self._turned = max(self._turned, last)
        return due
