"""OpenAI Realtime events, in the names of the general availability API, as they are. Pure.

What an event means is the backend's; only what is no event at all is answered here.
"""

import json

from transceiver.dialects.base import Heard, Message
from transceiver.dialects.reading import WANTED, read
from transceiver.events import Event, NewId

LABEL = "oai-events"


class Realtime:
    listens = True

    def __init__(self, new_id: NewId) -> None:
        self._new_id = new_id

    def said(self, event: Event) -> list[Message]:
        return [json.dumps(event)]

    def received(self, message: Message) -> Heard:
        event = read(message)
        return ([], [self._error("invalid_json", WANTED)]) if event is None else ([event], [])

    def too_large(self) -> list[Message]:
        return [self._error("message_too_large", "the message is above a=max-message-size")]

    def undelivered(self) -> list[Message]:
        detail = "an event is lost: it is above the a=max-message-size of the offer"
        return [self._error("event_too_large", detail)]

    def _error(self, code: str, message: str) -> str:
        error = {
            "type": "invalid_request_error",
            "code": code,
            "message": message,
            "param": None,
            "event_id": None,
        }
        return json.dumps({"type": "error", "event_id": self._new_id("event"), "error": error})
