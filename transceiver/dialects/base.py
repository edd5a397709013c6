"""A dialect: what the messages of a data channel mean, as events of a backend. Pure."""

from typing import Protocol

from transceiver.events import Event

Message = str | bytes

Heard = tuple[list[Event], list[Message]]
"""What a message comes to: events for the backend, and what we answer at once."""

HANG_UP: Event = {"type": "hang_up"}
"""The client wants the call to end. This very object, so that no client can spell it by chance."""


class Dialect(Protocol):
    listens: bool
    """Whether events of the backend go to this channel."""

    def said(self, event: Event) -> list[Message]:
        """The backend's event in this dialect; often nothing."""

    def received(self, message: Message) -> Heard:
        """A message of the client. Never raises: clients send anything."""

    def too_large(self) -> list[Message]:
        """A message of the client was above `max-message-size` and is lost."""

    def undelivered(self) -> list[Message]:
        """A message of ours was above the client's `max-message-size` and is lost: something
        short instead."""
