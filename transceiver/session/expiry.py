"""The end of a session by its length: a warning, then the end. Pure."""

import math

from transceiver import events
from transceiver.events import Event


class Expiry:
    """Ask `timer` at `deadline`. Times in seconds, monotonic."""

    def __init__(self, ends_at: float, warn_s: float) -> None:
        """`warn_s` before `ends_at` the client is told; 0: it is not."""
        self._ends_at = ends_at
        self._warn_s = warn_s
        self._warned = False
        self._over = False

    @property
    def deadline(self) -> float:
        if self._over:
            return math.inf
        return self._ends_at if self._warned else self._ends_at - self._warn_s

    def timer(self, now: float) -> tuple[list[Event], bool]:
        """What to tell the client, and whether the session is over: True once."""
        if now < self.deadline:
            return [], False
        self._warned = True
        if now < self._ends_at:
            left = math.ceil(self._ends_at - now)
            detail = f"the session ends in {left} s: finish, or start another"
            return [_error("session_expiring", detail)], False
        self._over = True
        return [_error("session_expired", "the session has reached its maximum length")], True


def _error(code: str, message: str) -> Event:
    return events.error(code, message, kind="session_error")
