"""What a server says that is for its operator: errors, and that its dialect is another. Pure.

Of an error only type and code are told: its message may be about a key, or about what was said.
"""

from collections.abc import Iterator

from transceiver.events import Event

BETA_DELTA = "response.audio.delta"  # in the names of the beta API
MAX_TOLD = 50  # in one call, whatever a server makes up
MAX_LENGTH = 64  # characters of a type or a code

_DIALECT = "the server speaks the beta API: set realtime.dialect = 'beta'"


class Complaints:
    """One call's. Each is told once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def about(self, event: Event) -> str | None:
        """A line for the log, if this event, in the names that we read, is worth one."""
        for line in _lines(event):
            if line not in self._told and len(self._told) < MAX_TOLD:
                self._told.add(line)
                return line
        return None


def _lines(event: Event) -> Iterator[str]:
    kind, error, session = event["type"], event.get("error"), event.get("session")
    if kind == "error" and isinstance(error, dict):
        yield f"server error: type {_shown(error.get('type'))}, code {_shown(error.get('code'))}"
    is_beta = kind == "session.created" and isinstance(session, dict) and "modalities" in session
    if kind == BETA_DELTA or is_beta:
        yield _DIALECT


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return "none"
    return ascii(value[:MAX_LENGTH])[1:-1][:MAX_LENGTH]
