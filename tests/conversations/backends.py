"""The backends of scripted conversations, and the server that stands behind one of them."""

import contextlib
import random
from collections.abc import AsyncIterator, Callable
from functools import cache

from tests.conversations.scripts.table import WARNING_S, Plan
from tests.realtime_server.script import Script
from tests.realtime_server.server import RealtimeServer
from transceiver.backends import echo
from transceiver.backends.base import Backend, BackendFactory, Client
from transceiver.backends.keeper import Terms
from transceiver.backends.parrot import Parrot
from transceiver.backends.realtime.backend import Realtime
from transceiver.backends.realtime.target import Target
from transceiver.turns.vad import Stock


class Backends:
    """Of one conversation. `make` makes it, `behind` is around it; `clock` is that of the call."""

    def __init__(self, plan: Plan, clock: Callable[[], float]) -> None:
        self._plan = plan
        self._clock = clock
        self._terms = Terms() if plan.length_s is None else Terms(plan.length_s, WARNING_S)
        self._server = RealtimeServer(Script(sound="speech", die_after_s=plan.dies_after_s))
        makers: dict[str, BackendFactory] = {
            "echo": lambda client: echo.make(client, terms=self._terms),
            "parrot": self._parrot,
            "realtime": self._realtime,
        }
        self.make = makers[plan.backend]

    @contextlib.asynccontextmanager
    async def behind(self) -> AsyncIterator[None]:
        """The server of a backend that has one."""
        if self._plan.backend != "realtime":
            yield
            return
        async with self._server:
            yield

    def _parrot(self, client: Client) -> Backend:
        return Parrot(client, _vads(), self._terms, think_s=self._plan.think_ms / 1000)

    def _realtime(self, client: Client) -> Backend:
        return Realtime(
            client,
            Target(self._server.url),
            self._terms,
            clock=self._clock,
            random=random.Random(self._plan.seed).random,
        )


@cache
def _vads() -> Stock:
    """One detector after another serves all conversations: to make one takes 0.1 s."""
    return Stock("silero")
