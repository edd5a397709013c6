"""A call's backend, and what it and the client tell each other beside the audio.

Made at the client's first authentic check, so that the backend may get ready during ICE. Events go
inline in both directions; those that the client has no channel for yet are kept, within a bound.
"""

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from transceiver.backends.base import BackendFactory
from transceiver.events import Event, NewId
from transceiver.lifecycle import End

MAX_KEPT = 50  # events: the first, which is the session, and the newest of the others
FINISH_S = 11.0  # a backend has 10 for its last words

Ear = Callable[[Event], None]

log = logging.getLogger(__name__)


class Line:
    """The `Client` of the backend that `make` gives. `note` is told all that is said; `on_wake`
    that a deadline may have moved, here or of the backend; `on_end` ends the call, which calls
    `close`."""

    def __init__(
        self,
        make: BackendFactory,
        session: Mapping[str, Any],
        new_id: NewId,
        note: Ear,
        on_wake: Callable[[], None],
        on_end: Callable[[End], None],
    ) -> None:
        self.session = session
        self.new_id = new_id
        self._note = note
        self.wake = on_wake
        self.end = on_end
        self.session_id: str | None = None  # once the backend has told one
        self.deadline = math.inf
        self._reason: End | None = None  # why the call is to end at `deadline`
        self._kept: list[Event] = []
        self._ears: list[Ear] = []
        self._closed = False
        self.backend = make(self)

    def say(self, event: Event) -> None:
        """For the backend, see `Client`."""
        if self._closed:
            return
        event = {"event_id": self.new_id("event"), **event}
        self._note(event)
        session = event.get("session")
        if isinstance(session, dict) and isinstance(session.get("id"), str):
            self.session_id = session["id"]
        if self._kept or not self._ears:
            self._keep(event)
            return
        for ear in tuple(self._ears):
            ear(event)

    def listen(self, ear: Ear) -> None:
        """A channel for events is open: `ear` gets what was kept, then all that is said."""
        self._ears.append(ear)
        while self._kept:
            ear(self._kept[0])
            del self._kept[:1]

    def deafen(self, ear: Ear) -> None:
        """Its channel is closed."""
        if ear in self._ears:
            self._ears.remove(ear)

    def hear(self, event: Event, now: float) -> None:
        """The client says something. A fault of the backend ends the call."""
        self._contained(lambda: self.backend.event(event, now))

    def finish(self, reason: End, now: float) -> None:
        """End the call when what the backend has said was heard, or after `FINISH_S`."""
        if self._reason is not None or self._closed:
            return
        self._reason, self.deadline = reason, now + FINISH_S
        self._contained(lambda: self.backend.finish(reason, now))

    def cut(self, reason: End) -> None:
        """End the call soon, and not within a call of the backend's."""
        self._reason, self.deadline = reason, 0.0
        self.wake()

    def timer(self, now: float) -> None:
        if self._reason is not None and now >= self.deadline:
            self.end(self._reason)

    def close(self) -> None:
        """The call has ended. A second time changes nothing."""
        if self._closed:
            return
        self._closed, self.deadline = True, math.inf
        self._kept.clear()
        self._ears.clear()
        try:
            self.backend.close()
        except Exception:
            log.exception("fault in a backend")

    def _contained(self, step: Callable[[], None]) -> None:
        if self._closed:
            return
        try:
            step()
        except Exception:
            log.exception("fault in a backend")
            self.end(End.INTERNAL_ERROR)
            return
        self.wake()

    def _keep(self, event: Event) -> None:
        if len(self._kept) >= MAX_KEPT:
            del self._kept[1]
        self._kept.append(event)
