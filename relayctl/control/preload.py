"""Fetches all flows of this relay from Redis at once: when it starts empty, and when more clients
than one can ask for singly come here from another relay.

Entries go on as they come, unread; the packet process checks and installs them. Redis is never
waited for longer than it may take: without its flows a relay serves too.
"""

import asyncio
import base64
import logging
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import cast

from redis.asyncio import RedisCluster
from redis.exceptions import RedisError

from relayctl import cached_flow
from relayctl.flow import pack_key
from relayctl.messages import PER_PART, Found, FoundAll, Message, Restored
from relayctl.reason import Reason
from relayctl.wire.redis_client import Client, masters, scan

SILENT_S = 1.0  # patience with one answer
DEADLINE_S = 10.0  # with all of them; a hundred thousand take two seconds of an idle machine
AT_ONCE = 1000  # keys asked for in one round
FULL_S = 0.001  # between looks at a full pipe

RUSH = 2000  # orphans in a second that single look-ups do not serve any more
LOOK_S = 1.0
ORPHANS = Reason.PUNT_ORPHAN, Reason.DROP_ORPHAN_BUDGET, Reason.DROP_ORPHAN_CLIENT_BUDGET
PAUSE_S = 10.0  # between two preloads

log = logging.getLogger(__name__)


class Preload:
    """`send` and `has_room` are those of the pipe to the packet process."""

    def __init__(
        self,
        redis: Client,
        vips: Iterable[int],
        send: Callable[[Message], bool],
        has_room: Callable[[], bool],
    ) -> None:
        self._redis = redis
        self._vips = tuple(vips)
        self._send = send
        self._has_room = has_room
        self._done: asyncio.Future[Restored] | None = None
        self.is_loading = False  # the first time; a relay that serves already stays ready

    async def serve(self, is_empty: bool, reasons: Callable[[], Mapping[Reason, int]]) -> None:
        """Fetch everything if the flow table is empty, and again in a rush of orphans, as `reasons`
        tell. Runs until cancelled."""
        if is_empty:
            self.is_loading = True
            try:
                await self.run()
            finally:
                self.is_loading = False
        await self.again(lambda: sum(reasons().get(reason, 0) for reason in ORPHANS))

    async def run(self) -> int:
        """Fetch everything; how many entries were sent on. Never raises for what Redis does."""
        started, sent = time.monotonic(), 0
        deadline = started + DEADLINE_S
        try:
            for vip in self._vips:
                async for entries in _entries(self._redis, f"flow:{{{vip}:*"):
                    sent += await self._pass_on([*_records(entries)], deadline)
            done = await self._completion(deadline)
        except (RedisError, OSError) as error:
            why = str(error) or "no answer in time"
            log.warning("redis gave %d flows, then failed (%s): the relay serves on", sent, why)
        else:
            took = time.monotonic() - started
            text = "redis gave %d flows in %.2f s; installed and refused since the start: %d, %d"
            log.info(text, sent, took, done.installed, done.refused)
        return sent

    async def again(self, orphans: Callable[[], int]) -> None:
        """Fetch everything anew whenever `orphans`, a running total, grows as in a rush. Runs until
        cancelled."""
        seen, looked = orphans(), time.monotonic()
        while True:
            await asyncio.sleep(LOOK_S)
            before, since = seen, looked
            seen, looked = orphans(), time.monotonic()
            if seen - before > RUSH * (looked - since):
                await self.run()
                await asyncio.sleep(PAUSE_S)
                seen, looked = orphans(), time.monotonic()

    def heard(self, message: Restored) -> None:
        """The packet process is done with what it got."""
        if self._done and not self._done.done():
            self._done.set_result(message)

    async def _completion(self, deadline: float) -> Restored:
        """Until every flow that was sent is dealt with. Raises `TimeoutError`."""
        self._done = asyncio.get_running_loop().create_future()
        await self._send_in_time(FoundAll(), deadline)
        async with asyncio.timeout(deadline - time.monotonic()):
            return await self._done

    async def _pass_on(self, records: list[bytes], deadline: float) -> int:
        """At the pace at which the packet process takes them. Raises `TimeoutError`."""
        _expect_before(deadline)
        for at in range(0, len(records), PER_PART):
            joined = b"".join(records[at : at + PER_PART])
            await self._send_in_time(Found(base64.b64encode(joined).decode()), deadline)
        return len(records)

    async def _send_in_time(self, message: Message, deadline: float) -> None:
        while not (self._has_room() and self._send(message)):
            _expect_before(deadline)
            await asyncio.sleep(FULL_S)  # a pipe tells nobody that it has room


def _expect_before(deadline: float) -> None:
    """Not by a cancellation: where the client has a timeout of its own, one may get lost in it."""
    if time.monotonic() > deadline:
        raise TimeoutError(f"it took over {DEADLINE_S:.0f} s")


async def _entries(
    redis: Client, pattern: str
) -> AsyncIterator[Iterator[tuple[bytes, bytes | None]]]:
    """Names and values, some at a time, of every master in turn."""
    async with asyncio.timeout(SILENT_S):
        everyone = await masters(redis)
    for master in everyone:
        cursor, is_first = 0, True
        while cursor or is_first:
            is_first = False
            async with asyncio.timeout(SILENT_S):
                cursor, names = await scan(redis, master, cursor, pattern, AT_ONCE)
                values = await _values(redis, names)
            yield zip(names, values, strict=True)


async def _values(redis: Client, names: list[bytes]) -> list[bytes | None]:
    """In the order of the names; every key of a cluster is in a slot of its own."""
    if not names:
        return []
    if not isinstance(redis, RedisCluster):
        return cast(list[bytes | None], await redis.mget(names))
    pipeline = redis.pipeline()
    for name in names:
        pipeline.get(name)
    return cast(list[bytes | None], await pipeline.execute())


def _records(entries: Iterable[tuple[bytes, bytes | None]]) -> Iterator[bytes]:
    """Entries as the pipe carries them, without those that are none of ours."""
    for name, value in entries:
        if value is None or len(value) != cached_flow.VALUE.size:
            continue
        key = _key(name)
        if key is not None:
            yield cached_flow.RECORD_KEY.pack(len(key), key) + value


def _key(name: bytes) -> bytes | None:
    """A flow's key by its name in Redis, ten times faster than by way of an `Address`."""
    try:
        vip, _, client = name.removeprefix(b"flow:{").removesuffix(b"}").decode().partition(":")
        host, _, port = client.rpartition(":")
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        packed = socket.inet_pton(family, host.removeprefix("[").removesuffix("]"))
        return pack_key(packed + int(port).to_bytes(2, "big"), int(vip))
    except (OSError, ValueError, OverflowError, struct.error):
        return None
