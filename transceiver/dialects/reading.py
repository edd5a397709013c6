"""Reading the JSON of a client, within limits; cutting events that are too long for it. Pure."""

import json
import math
from collections.abc import Mapping
from typing import Any

from transceiver.dialects.base import Message
from transceiver.events import Event

MAX_DEPTH = 32  # of a client's JSON

WANTED = f"want a JSON object, at most {MAX_DEPTH} levels deep"


def read(message: Message) -> dict[str, Any] | None:
    """The object that a message is, or None."""
    try:
        value = loads(message)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and fits(value) else None


def halves(event: Event) -> tuple[Event, Event] | None:
    """The same said in two events, if it is a piece of text or of a transcript."""
    delta = event.get("delta")
    if not str(event.get("type")).endswith(".delta") or not isinstance(delta, str):
        return None
    middle = len(delta) // 2
    if middle == 0:
        return None
    event_id = event.get("event_id")
    return (
        {**event, "event_id": f"{event_id}a", "delta": delta[:middle]},
        {**event, "event_id": f"{event_id}b", "delta": delta[middle:]},
    )


def loads(text: Message) -> Any:
    """As `json.loads`, but of numbers that JSON can say back. Raises `ValueError` and
    `RecursionError`."""
    return json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_whole)


def _refuse(constant: str) -> None:
    """NaN and Infinity: Python reads and writes them, a browser's JSON does not."""
    raise ValueError(constant)


def _finite(text: str) -> float:
    """Neither is 1e999 a number that JSON can say back."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _whole(text: str) -> int:
    """Nor is one of 400 digits."""
    _finite(text)
    return int(text)


def fits(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether a JSON value has no more than so many levels."""
    if isinstance(value, Mapping):
        return depth > 0 and all(fits(item, depth - 1) for item in value.values())
    if isinstance(value, list):
        return depth > 0 and all(fits(item, depth - 1) for item in value)
    return True
