"""A call's backend, and what it and the client tell each other beside the audio.

Made at the client's first authentic check, so that the backend may get ready during ICE, or for the
first watcher. Events go inline in both directions; those that the client has no channel for yet are
kept, within a bound. Watchers are beside all that: they hear what the client hears, from now on.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from transceiver.backends.base import BackendFactory
from transceiver.events import Event, NewId, error
from transceiver.lifecycle import End
from transceiver.session.items import Item

MAX_KEPT = 50  # events: the first, which is the session, what is restored, and the newest
MAX_EARLY = 20  # events of watchers, until the call is connected
FINISH_S = 11.0  # a backend has 10 for its last words

Ear = Callable[[Event], None]

log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Somebody beside the client who follows the events of a call. Neither method raises."""

    def told(self, event: Event) -> None:
        """The client is told this; in order."""

    def over(self) -> None:
        """The call has ended; nothing follows."""


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
        restored: Sequence[Item] = (),
    ) -> None:
        self.session = session
        self.restored = restored
        self._front = 1 + 2 * len(restored)  # events that stay when too many are kept
        self.new_id = new_id
        self._note = note
        self.wake = on_wake
        self.end = on_end
        self._reason: End | None = None  # why the call is to end
        self._until = math.inf  # and when
        self._told: dict[str, Any] | None = None  # the session, as the backend told it last
        self._kept: list[Event] = []
        self._ears: list[Ear] = []
        self._watchers: list[Watcher] = []
        self._early: list[Event] | None = []  # of watchers; None once the backend can hear them,
        self._early_until = math.inf  # which is then
        self._closed = False
        self.backend = make(self)

    @property
    def session_id(self) -> str | None:
        """Once the backend has told one."""
        return None if self._told is None else self._told["id"]

    @property
    def deadline(self) -> float:
        """When `timer` has work; math.inf = never."""
        return min(self._until, self._early_until)

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def say(self, event: Event) -> None:
        """For the backend, see `Client`."""
        if self._closed:
            return
        event = {"event_id": self.new_id("event"), **event}
        self._note(event)
        session = event.get("session")
        if isinstance(session, dict) and isinstance(session.get("id"), str):
            self._told = session
        for watcher in tuple(self._watchers):
            watcher.told(event)
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

    def watch(self, watcher: Watcher) -> None:
        """`watcher` is told the session as it is, then all that is said. What is kept stays."""
        if self._closed:
            watcher.over()
            return
        if self._told is not None:
            event_id = self.new_id("event")
            watcher.told({"type": "session.created", "event_id": event_id, "session": self._told})
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def prompt(self, event: Event, now: float) -> None:
        """A watcher says something, in the client's place. It waits until the call is connected:
        backends hear nothing before they have begun."""
        if self._early is None:
            self.hear(event, now)
        elif len(self._early) < MAX_EARLY:
            self._early.append(event)
        else:
            detail = f"the call is not connected yet, and {MAX_EARLY} events wait for that"
            self.say(error("too_many_early_events", detail, event_id=event.get("event_id")))

    def connected(self, now: float) -> None:
        """The backend has begun: it hears what watchers said meanwhile, soon and not in here."""
        if self._early:
            self._early_until = now
            self.wake()
        else:
            self._early = None

    def hear(self, event: Event, now: float) -> None:
        """The client says something. A fault of the backend ends the call."""
        self._contained(lambda: self.backend.event(event, now))

    def finish(self, reason: End, now: float) -> None:
        """End the call when what the backend has said was heard, or after `FINISH_S`."""
        if self._reason is not None or self._closed:
            return
        self._reason, self._until = reason, now + FINISH_S
        self._contained(lambda: self.backend.finish(reason, now))

    def cut(self, reason: End) -> None:
        """End the call soon, and not within a call of the backend's."""
        self._reason, self._until = reason, 0.0
        self.wake()

    def timer(self, now: float) -> None:
        if now >= self._early_until:
            early, self._early, self._early_until = self._early or (), None, math.inf
            for event in early:
                self.hear(event, now)
        if self._reason is not None and now >= self._until:
            self.end(self._reason)

    def close(self) -> None:
        """The call has ended. A second time changes nothing."""
        if self._closed:
            return
        self._closed, self._until, self._early_until = True, math.inf, math.inf
        self._kept.clear()
        self._ears.clear()
        self._early = None
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher.over()
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
        if len(self._kept) >= self._front + MAX_KEPT - 1:
            del self._kept[self._front]
        self._kept.append(event)
