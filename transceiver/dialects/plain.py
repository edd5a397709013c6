"""No protocol: every message comes back, and `ping` comes back as `pong`. Pure."""

from transceiver.dialects.base import Message


class Plain:
    def opened(self) -> list[Message]:
        return []

    def received(self, message: Message) -> list[Message]:
        if isinstance(message, str) and message.startswith("ping"):
            return ["pong" + message.removeprefix("ping")]
        return [message]

    def too_large(self) -> list[Message]:
        return []

    def undelivered(self) -> list[Message]:
        return []
