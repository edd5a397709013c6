"""What goes up, in order, while the upstream server is away, slow, or just as fast as we are. Pure.

Sound and events wait in one queue, so that a commit stays behind the sound it commits. Sound leaves
at 4 times real time at most, so a server that was away for 10 s has caught up 3.3 s later.
"""

import math
from collections import deque

from transceiver.backends.realtime.configuration import RATE
from transceiver.events import Event

MAX_SOUND_S = 10.0
MAX_EVENTS = 50  # of the client's
SPEED = 4.0  # times real time
BURST_S = 1.2  # of sound at once; a client's pause comes as 1 s of silence

_BYTES_PER_S = RATE * 2

Entry = bytes | Event


class Backlog:
    """Nothing leaves before `start`. Sound is 16-bit mono at `RATE`."""

    def __init__(self) -> None:
        self.dropped = 0  # pieces of sound; the oldest
        self._queue: deque[Entry] = deque()
        self._sound = 0  # bytes of it
        self._events = 0
        self._allowed = 0.0  # bytes of sound at `_at`
        self._at: float | None = None  # None: stopped

    def start(self, now: float) -> None:
        """The server takes what waits."""
        self._allowed, self._at = 0.0, now

    def stop(self) -> None:
        self._at = None

    def add_sound(self, samples: bytes) -> None:
        """Up to a second. Beyond 10 s the oldest sound is dropped."""
        self._queue.append(samples)
        self._sound += len(samples)
        while self._sound > MAX_SOUND_S * _BYTES_PER_S:
            at = next(n for n, entry in enumerate(self._queue) if isinstance(entry, bytes))
            self._sound -= len(self._queue[at])
            del self._queue[at]
            self.dropped += 1

    def add_event(self, event: Event, ours: bool = False) -> bool:
        """False: too many wait, and it was not taken. `ours` always is."""
        if not ours and self._events >= MAX_EVENTS:
            return False
        self._queue.append(event)
        self._events += 1
        return True

    def take(self, now: float) -> Entry | None:
        """What is to be sent now; None: nothing before `delay`."""
        if not self._queue or self.delay(now) > 0:
            return None
        entry = self._queue.popleft()
        if isinstance(entry, bytes):
            self._allowed -= len(entry)
            self._sound -= len(entry)
        else:
            self._events -= 1
        return entry

    def restore(self, samples: bytes) -> None:
        """This sound could not be sent: it is first again."""
        self._queue.appendleft(samples)
        self._sound += len(samples)

    def delay(self, now: float) -> float:
        """Seconds until `take` has something; infinite if it takes a call of another method."""
        if self._at is None or not self._queue:
            return math.inf
        speed = SPEED * _BYTES_PER_S
        self._allowed = min(self._allowed + (now - self._at) * speed, BURST_S * _BYTES_PER_S)
        self._at = now
        head = self._queue[0]
        return max(0.0, (len(head) - self._allowed) / speed) if isinstance(head, bytes) else 0.0
