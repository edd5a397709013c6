"""No protocol: every message comes back, and `ping` comes back as `pong`. Pure."""

from transceiver.dialects.base import Heard, Message
from transceiver.events import Event


class Plain:
    listens = False

    def said(self, event: Event) -> list[Message]:
        return []

    def received(self, message: Message) -> Heard:
        if isinstance(message, str) and message.startswith("ping"):
            return [], ["pong" + message.removeprefix("ping")]
        return [], [message]

    def too_large(self) -> list[Message]:
        return []

    def undelivered(self) -> list[Message]:
        return []
