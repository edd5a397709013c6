"""What is to be said, in the order in which it has to be. Values only."""

from typing import NamedTuple

from transceiver import events
from transceiver.events import Event


class Up(NamedTuple):
    """Send this to the server."""

    event: Event
    ours: bool = False  # the client knows nothing of it


class Down(NamedTuple):
    """Tell the client this."""

    event: Event


Out = Up | Down


def backend_error(code: str, message: str, event_id: object = None) -> Event:
    """An `error` event that is not the client's fault."""
    return events.error(code, message, event_id=event_id, kind="server_error")
