"""The session that we ask of the upstream server, and how it comes to be. Pure.

What is asked is the call's own session with the sound as we carry it, and later what the client
changed: a server that is connected to anew is asked for all of it.
"""

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from transceiver.events import Event
from transceiver.session.settings import merged

RATE = 24_000  # Hz, of what goes up and comes down
MAX_WANTED = 256 * 1024  # characters of JSON: updates add up
MAX_HELD = 50  # events between the server's session and ours

_FORMAT = {"format": {"type": "audio/pcm", "rate": RATE}}
_READ_ONLY = ("id", "object", "expires_at")


class Configuration:
    """Of one call. `model` is the operator's and goes before the one that the client asks for."""

    def __init__(self, asked: Mapping[str, Any], model: str | None) -> None:
        wanted = {key: value for key, value in asked.items() if key not in _READ_ONLY}
        ours = {"type": "realtime", "audio": {"input": _FORMAT, "output": _FORMAT}}
        self._model = model
        self._wanted = merged(stripped(wanted), ours)
        if model:
            self._wanted["model"] = model
        self._confirmed = self._wanted  # as much of it as the server has shown
        self._unanswered: deque[object] = deque(maxlen=MAX_HELD)  # ids of the client's updates
        self._own: Mapping[str, Any] | None = None  # the server's session as it was
        self._event_id = ""  # of our session.update
        self._held: list[Event] = []
        self._introduced = False  # the client has its session.created
        self.ready = False  # the server has answered
        self.interrupts = True  # speech silences a reply

    @property
    def wanted(self) -> dict[str, Any]:
        """What a server would be asked for now, but for the formats of the sound."""
        return stripped(self._wanted)

    def restart(self) -> None:
        """The next server knows nothing of us."""
        self.ready, self._own = False, None
        self._held.clear()

    def created(self, session: Mapping[str, Any], event_id: str) -> Event:
        """The server shows its session; returns what we ask."""
        self._own, self._event_id = session, event_id
        return {"type": "session.update", "event_id": event_id, "session": self._wanted}

    def hold(self, event: Event) -> None:
        """An event that came before its time. Ahead of the session it is not the client's: it may
        be about our key."""
        if self._own is not None and len(self._held) < MAX_HELD:
            self._held.append(event)

    def answers(self, cause: object) -> bool:
        """Whether an error is about what we ask. Not all servers tell what caused one."""
        return self._own is not None and cause in (self._event_id, None)

    def settled(self, session: Mapping[str, Any] | None) -> list[Event]:
        """The server answers with `session`, or not well (None): what the client is told."""
        if self._own is None:
            return []
        session = self._own if session is None else session
        self.ready, self.interrupts = True, _interrupts(session)
        told, self._held = self._held, []
        if not self._introduced:
            self._introduced = True
            told = [{"type": "session.created", "session": dict(session)}, *told]
        elif self._unanswered:
            told = [{"type": "session.updated", "session": dict(session)}, *told]
        self._unanswered.clear()
        return told

    def passed(self, session: Mapping[str, Any]) -> dict[str, Any]:
        """What goes up of a session that the client asks for later."""
        kept = stripped(session)
        if self._model:
            kept.pop("model", None)
        return kept

    def asked(self, session: object, event_id: object) -> None:
        """A `session.update` of the client went up."""
        if isinstance(session, dict):
            self._unanswered.append(event_id)
            wanted = merged(self._wanted, session)
            if len(json.dumps(wanted)) <= MAX_WANTED:  # else it is not asked again
                self._wanted = wanted

    def updated(self, session: Mapping[str, Any]) -> None:
        """The server shows what it made of it."""
        self.interrupts = _interrupts(session)
        self._wanted = _shown(self._wanted, session)
        if self._unanswered:
            self._unanswered.popleft()
        if not self._unanswered:
            self._confirmed = self._wanted

    def refused(self, cause: object) -> None:
        """An error came, perhaps about an update: what is refused is not asked again."""
        if cause in self._unanswered:
            self._unanswered.remove(cause)
            if not self._unanswered:
                self._wanted = self._confirmed


def stripped(session: Mapping[str, Any]) -> dict[str, Any]:
    """Without the formats of the sound: over WebRTC the SDP decides them. All else is as it was."""
    audio = session.get("audio")
    if not isinstance(audio, dict):
        return dict(session)
    kept = {
        side: {key: value for key, value in part.items() if key != "format"}
        if side in ("input", "output") and isinstance(part, dict)
        else part
        for side, part in audio.items()
    }
    return {**session, "audio": kept}


def _shown(asked: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, with the values that the server shows for it. An alias stays the model."""
    values = {}
    for key, value in asked.items():
        shown = value if key == "model" else session.get(key, value)
        both = isinstance(value, dict) and isinstance(shown, dict)
        values[key] = _shown(value, shown) if both else shown
    return values


def _interrupts(session: object) -> bool:
    found = session
    for key in ("audio", "input", "turn_detection"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return not isinstance(found, Mapping) or found.get("interrupt_response") is not False
