"""Realtime events: JSON objects with a `type`, in the names of OpenAI's general availability API.

Everything a call's client and its backend tell each other beside the audio is one of these. Other
names and protocols exist in `dialects/` only.
"""

from collections.abc import Callable
from typing import Any

Event = dict[str, Any]

NewId = Callable[[str], str]
"""`new_id("event")` gives an identifier like `event_…`, never the same twice."""


def error(
    code: str,
    message: str,
    *,
    param: str | None = None,
    event_id: object = None,
    kind: str = "invalid_request_error",
) -> Event:
    """An `error` event. `param` names the field at fault, `event_id` the client's event, whatever
    the client gave for it."""
    told = {"type": kind, "code": code, "message": message, "param": param}
    return {"type": "error", "error": told | {"event_id": _text(event_id)}}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
