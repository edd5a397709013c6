"""What every face does around the core: who asks, from where, how long it takes, what is told.

A face reads its own kind of request and writes its own kind of answer; between them it calls
`admit` (before it reads a body) and `begin`. Offers that would have to wait for us are refused at
once: one that waits in vain costs as much as one that is answered. Those that wait for a slow
transceiver are not held against the others.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import HTTPConnection, Request

from signaling.access.access import Access, Caller
from signaling.calls import Calls
from signaling.fleet.control import Created
from signaling.fleet.location import Locator
from signaling.metrics import Metrics
from signaling.refusal import Code, Refused
from signaling.session import Session

HEARD = "heard"  # in a request's state: when its head had come, monotonic seconds
LATE_S = 0.05  # from then until it has its turn
SOON_S = 1


@dataclass(frozen=True, slots=True)
class Room:
    """For offers at a time."""

    when_late: int = 128  # a tenth of a second's work
    at_most: int = 1024


ROOM = Room()


class Front:
    """`room`: more offers than that are refused. `clock` is monotonic."""

    def __init__(
        self,
        calls: Calls,
        access: Access,
        locator: Locator,
        metrics: Metrics,
        room: Room = ROOM,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.calls = calls
        self.access = access
        self._locator = locator
        self._metrics = metrics
        self._room = room
        self._clock = clock
        self._under_way = 0
        metrics.offers_under_way.set_function(lambda: self._under_way)

    async def admit(self, request: HTTPConnection) -> Caller:
        """Whoever may begin a call. Raises `Refused`."""
        heard = request.scope.get("state", {}).get(HEARD)
        late = heard is not None and self._clock() - heard > LATE_S
        self._expect_room(self._room.when_late if late else self._room.at_most)
        return await self.access.start(request)

    async def begin(
        self,
        request: Request,
        face: str,
        caller: Caller,
        offer: str,
        dialect: str,
        session: Session | None = None,
        *,
        resumes: bool = False,
    ) -> Created:
        """Begin a call for `caller`. `resumes`: it may carry on the call that `?resume=` names.
        Raises `Refused`."""
        self._expect_room(self._room.at_most)
        begun = self._clock()
        self._under_way += 1
        try:
            created = await self.calls.create(
                offer,
                dialect,
                {**(session or {}), **caller.session},
                subject=caller.subject,
                where=self._locator.locate(request),
                resume=request.query_params.get("resume") if resumes else None,
            )
        finally:
            self._under_way -= 1
        self._metrics.setup_seconds_of(face).observe(self._clock() - begun)
        request.state.call = created.call_id.public
        return created

    def _expect_room(self, limit: int) -> None:
        """Raises `Refused`."""
        if self._under_way >= limit:
            raise Refused(
                Code.OVERLOADED, "too many offers at a time; try again soon", retry_after_s=SOON_S
            )
