"""Who asks: the key of a request, what it may do, and how often.

A call's id is its capability: restart, state, path and candidates need no key beside it. Starting
a call takes an API key or an ephemeral one; managing one (hang-up, sideband, new ephemeral keys)
takes an API key.
"""

from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from signaling.session import Session


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request is. `subject` is "" where no keys are asked for; `session` is what
    the ephemeral key was made for, and stands over what the client asks."""

    subject: str = ""
    session: Session = field(default_factory=dict, repr=False)


class Access:
    """Nobody is asked for a key."""

    async def start(self, request: HTTPConnection) -> Caller:
        """May the request begin a call? Raises `Refused`: 401, 403, 429."""
        return Caller()

    async def manage(self, request: HTTPConnection) -> Caller:
        """May it end, watch or steer calls of its subject? Raises `Refused`: 401, 403, 429."""
        return Caller()
