"""A dialect: what the messages of a data channel mean. Pure: messages in, messages out."""

from typing import Protocol

Message = str | bytes


class Dialect(Protocol):
    def opened(self) -> list[Message]:
        """The channel is open: what we say first."""

    def received(self, message: Message) -> list[Message]:
        """A message of the client: what we answer. Never raises: clients send anything."""

    def too_large(self) -> list[Message]:
        """A message of the client was above `max-message-size` and is lost."""

    def undelivered(self) -> list[Message]:
        """A message of ours was above the client's `max-message-size` and is lost: something
        short instead."""
