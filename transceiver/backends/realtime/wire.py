"""Events as the messages of the WebSocket. Pure.

What passes through must be the same JSON value on the other side, so nothing is taken that cannot
be said again: no NaN, no number beyond what a double holds, no nesting without end.
"""

import base64
import json

from transceiver.dialects import reading
from transceiver.events import Event


def read(message: str | bytes) -> Event | None:
    """The event that a message is, or None."""
    event = reading.read(message)
    return event if event is not None and isinstance(event.get("type"), str) else None


def text(event: Event) -> str:
    return json.dumps(event, separators=(",", ":"))


def append(samples: bytes) -> str:
    """`input_audio_buffer.append` of 16-bit samples."""
    audio = base64.b64encode(samples).decode()
    return f'{{"type":"input_audio_buffer.append","audio":"{audio}"}}'
