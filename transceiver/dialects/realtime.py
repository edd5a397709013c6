"""OpenAI Realtime events on the channel `oai-events`: as much as a client needs to begin. Pure.

Holds the session object: `session.update` merges into it, keys that we do not know are kept and
shown. There is no conversation behind it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from transceiver.dialects.base import Message

LABEL = "oai-events"
MODEL = "echo"
MAX_DEPTH = 32  # of a client's JSON
MAX_SESSION = 128 * 1024  # characters of JSON: updates add up

_READ_ONLY = ("id", "object", "expires_at")


class Realtime:
    """`new_id("event")` gives an identifier like `event_…`, never the same twice."""

    def __init__(self, new_id: Callable[[str], str]) -> None:
        self._new_id = new_id
        self._session: dict[str, Any] = {
            "type": "realtime",
            "object": "realtime.session",
            "id": new_id("sess"),
            "model": MODEL,
            "output_modalities": ["audio"],
            "instructions": "",
            "audio": {
                "input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": None},
                "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "echo"},
            },
            "tools": [],
            "tool_choice": "auto",
            "max_output_tokens": "inf",
        }

    def opened(self) -> list[Message]:
        return [self._event("session.created", session=self._session)]

    def received(self, message: Message) -> list[Message]:
        event = _parse(message)
        if event is None:
            return [self._error("invalid_json", f"want a JSON object, {MAX_DEPTH} levels deep")]
        kind, event_id = event.get("type"), event.get("event_id")
        if kind != "session.update":
            shown = kind[:64] if isinstance(kind, str) else type(kind).__name__
            return [self._error("unknown_event", f"no event {shown!r} here", "type", event_id)]
        changes = event.get("session")
        if not isinstance(changes, dict):
            return [self._error("invalid_session", "want an object", "session", event_id)]
        changed = {key: value for key, value in changes.items() if key not in _READ_ONLY}
        session = _merged(self._session, changed)
        answer = self._event("session.updated", session=session)
        if len(answer) > MAX_SESSION:
            detail = f"the session would take more than {MAX_SESSION} characters"
            return [self._error("session_too_large", detail, "session", event_id)]
        self._session = session
        return [answer]

    def too_large(self) -> list[Message]:
        return [self._error("message_too_large", "the message is above a=max-message-size")]

    def undelivered(self) -> list[Message]:
        detail = "an event is lost: it is above the a=max-message-size of the offer"
        return [self._error("event_too_large", detail)]

    def _event(self, kind: str, **fields: Any) -> str:
        return json.dumps({"type": kind, "event_id": self._new_id("event"), **fields})

    def _error(self, code: str, message: str, param: str | None = None, of: object = None) -> str:
        error = {
            "type": "invalid_request_error",
            "code": code,
            "message": message,
            "param": param,
            "event_id": of if isinstance(of, str) else None,
        }
        return self._event("error", error=error)


def _parse(message: Message) -> dict[str, Any] | None:
    try:
        event = json.loads(message, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and _depth_fits(event, MAX_DEPTH) else None


def _refuse(constant: str) -> None:
    """NaN and Infinity: Python reads and writes them, a browser's JSON does not."""
    raise ValueError(constant)


def _depth_fits(value: object, depth: int) -> bool:
    if isinstance(value, Mapping):
        return depth > 0 and all(_depth_fits(item, depth - 1) for item in value.values())
    if isinstance(value, list):
        return depth > 0 and all(_depth_fits(item, depth - 1) for item in value)
    return True


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """`new` over `old`, objects key by key; null and lists replace."""
    both = old | new
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            both[key] = _merged(before, value)
    return both
