"""This process in the registry of transceivers: its key in Redis, written anew each second.

Thin I/O in a task of its own. Redis may be slow, hung or gone: the key is missing then, and calls
and media know nothing of it.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable

from redis.exceptions import RedisError

from relayctl.wire import redis_client
from relayctl.wire.address import Address
from relayctl.wire.redis_client import Client
from relayctl.wire.registration import EVERY_S, EXPIRES_S, Registration, key_of

DEADLINE_S = 0.25

log = logging.getLogger("transceiver")


class Registrar:
    """`figures` gives what is written. `counts` are the tries, by whether they went well."""

    def __init__(
        self,
        redis: Client,
        endpoint: Address,
        figures: Callable[[], Registration],
        counts: Counter[str],
    ) -> None:
        self._redis = redis
        self._key = key_of(endpoint)
        self._figures = figures
        self._counts = counts
        self._at_once = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._silent = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def tell(self) -> None:
        """Something changed that nobody should wait a second for."""
        self._at_once.set()

    async def stop(self) -> None:
        """Out of the registry; if Redis does not hear that, the key goes by itself."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(DEADLINE_S):
                await self._redis.delete(self._key)
        await redis_client.close(self._redis)

    async def _run(self) -> None:
        while True:
            self._at_once.clear()
            await self._write()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):  # wait_for could swallow our being cancelled
                    await self._at_once.wait()

    async def _write(self) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                await self._redis.set(self._key, self._figures().render(), ex=EXPIRES_S)
        except Exception as error:  # whatever it is: the next try comes
            self._counts["failed"] += 1
            if not self._silent:
                log.warning("redis is silent (%s): out of the registry", type(error).__name__)
            self._silent = True
            return
        self._counts["written"] += 1
        if self._silent:
            log.info("redis answers again: back in the registry")
        self._silent = False
