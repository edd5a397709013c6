"""What every face does around the core: who asks, from where, how long it takes, what is told.

A face reads its own kind of request and writes its own kind of answer; between them it calls
`admit` (before it reads a body) and `begin`.
"""

import time

from starlette.requests import HTTPConnection, Request

from signaling.access.access import Access, Caller
from signaling.calls import Calls
from signaling.fleet.control import Created
from signaling.fleet.location import Locator
from signaling.metrics import Metrics
from signaling.session import Session


class Front:
    def __init__(self, calls: Calls, access: Access, locator: Locator, metrics: Metrics) -> None:
        self.calls = calls
        self.access = access
        self._locator = locator
        self._metrics = metrics

    async def admit(self, request: HTTPConnection) -> Caller:
        """Whoever may begin a call. Raises `Refused`."""
        return await self.access.start(request)

    async def begin(
        self,
        request: Request,
        face: str,
        caller: Caller,
        offer: str,
        dialect: str,
        session: Session | None = None,
    ) -> Created:
        """Begin a call for `caller`. Raises `Refused`."""
        begun = time.monotonic()
        created = await self.calls.create(
            offer,
            dialect,
            {**(session or {}), **caller.session},
            subject=caller.subject,
            where=self._locator.locate(request),
        )
        self._metrics.setup_seconds.labels(face).observe(time.monotonic() - begun)
        request.state.call = created.call_id.public
        return created
