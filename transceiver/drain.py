"""When a process ends: at once, or after its calls.

Draining, it takes no new call and ends with its last one, or when `drain_s` is over; shortly
before that, the calls that are left get the time for their last words.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sized

LOOK_EVERY_S = 0.1
GOODBYE_S = 12.0  # of `drain_s`, at most half of it

log = logging.getLogger("transceiver")


class Drain:
    """`calls` are the live ones. `on_begin` is told once, when no more calls are wanted;
    `on_goodbye` lets those that are left say their last words."""

    def __init__(
        self,
        calls: Sized,
        drain_s: float,
        on_begin: Callable[[], None],
        on_goodbye: Callable[[], None],
    ) -> None:
        self._calls = calls
        self._drain_s = drain_s
        self._on_begin = on_begin
        self._on_goodbye = on_goodbye
        self._terms = 0
        self._begun = asyncio.Event()
        self._at_once = asyncio.Event()

    def begin(self) -> None:
        """Drain; a second time changes nothing."""
        if self._begun.is_set():
            return
        self._begun.set()
        self._on_begin()
        log.info("draining: %d calls, at most %.0f s", len(self._calls), self._drain_s)

    def terminate(self) -> None:
        """SIGTERM: the first one drains, the second one ends the process."""
        self._terms += 1
        if self._terms > 1:
            self.end()
        else:
            self.begin()

    def end(self) -> None:
        """End at once."""
        self._at_once.set()
        self.begin()

    async def over(self) -> None:
        """Returns when the process shall end."""
        await self._begun.wait()
        self._look()
        goodbye_s = min(GOODBYE_S, self._drain_s / 2)
        if not await self._ends_within(self._drain_s - goodbye_s):
            self._on_goodbye()
            await self._ends_within(goodbye_s)

    async def _ends_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._at_once.wait(), seconds)
        return self._at_once.is_set()

    def _look(self) -> None:
        if len(self._calls):
            asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)
        else:
            self._at_once.set()
