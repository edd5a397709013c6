"""Replaces a packet process that lives and does nothing.

While it is silent the program drops what it would hand up, and known flows go on; only new calls
wait. A process that dies is another matter: the daemon ends with it, and its supervisor starts
both.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

FRESH_S = 2.0  # age of the last heartbeat of a packet process that lives
HUNG_S = 10  # seconds in a row without a fresh heartbeat
LOOK_S = 1.0
MAX_PAUSE_S = 60.0  # between a start and the next kill
HEALTHY_S = 600  # after which the pause is short again

log = logging.getLogger(__name__)


class Hanging(Protocol):
    """The packet process, as far as one can see and help."""

    @property
    def pid(self) -> int: ...

    def silent_s(self) -> float: ...

    async def replace(self) -> None: ...


class Watchdog:
    def __init__(
        self, child: Hanging, replaced: Callable[[], None], look_s: float = LOOK_S
    ) -> None:
        """`replaced` is called when a new process has started: it knows nothing yet."""
        self._child = child
        self._replaced = replaced
        self._look_s = look_s
        self._pause = 0.0  # looks beyond `HUNG_S`, doubled with every replacement
        self.replacements = 0

    async def run(self) -> None:
        """Look until cancelled. Raises `PacketProcessError` when no new process starts."""
        silent = healthy = 0
        while True:
            await asyncio.sleep(self._look_s)
            # Looks are counted, not seconds: heartbeats wait unread while this process is stopped.
            is_silent = self._child.silent_s() > FRESH_S
            silent, healthy = (silent + 1, 0) if is_silent else (0, healthy + 1)
            if healthy >= HEALTHY_S:
                self._pause = 0.0
            if silent >= HUNG_S + self._pause:
                silent = 0
                await self._replace()

    async def _replace(self) -> None:
        old = self._child.pid
        self.replacements += 1
        self._pause = min(max(HUNG_S, 2 * self._pause), MAX_PAUSE_S)
        await self._child.replace()
        log.error("the packet process %d hung and was killed; %d serves now", old, self._child.pid)
        self._replaced()
