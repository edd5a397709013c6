"""What the transceivers say of themselves in Redis, read once a second.

Thin I/O. Whatever else lies in Redis, a reading costs no more than so many pages of its keys; the
next reading goes on where this one stopped, so every key has its turn.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import RedisCluster
from redis.exceptions import RedisError

from relayctl.wire import redis_client, registration
from relayctl.wire.address import Address
from relayctl.wire.cluster import Clusters
from relayctl.wire.redis_client import Client
from relayctl.wire.registration import Registration, RegistrationError

DEADLINE_S = 0.5  # of a whole reading; nobody waits for it
PAGES = 16
PAGE = 1000  # keys


class Silent(Exception):
    """Redis does not answer, or not in time; `str()` names the kind of failure only."""


@dataclass(slots=True)
class Reading:
    """The endpoints that were found, and how many entries were of no use, by why."""

    found: dict[Address, Registration] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)


class Announcements:
    """Reads them. An address that is in no cluster of ours, or not in the one it claims, is none
    of ours, whoever wrote it there."""

    def __init__(self, redis: Client, clusters: Clusters) -> None:
        self._redis = redis
        self._clusters = clusters
        self._masters: list[Any] = []  # to be read in this round, the one under way first
        self._cursor = 0

    async def read(self, known: Collection[Address], room: int = PAGE) -> Reading:
        """Of all `known` endpoints, and of new ones: whole pages, until these fill `room`.

        Raises `Silent`."""
        reading = Reading()
        try:
            async with asyncio.timeout(DEADLINE_S):
                new = await self._new(known, room, reading.ignored)
                endpoints = [*known, *new]
                values = await self._values(endpoints)
        except (RedisError, OSError, TimeoutError) as error:
            if isinstance(self._redis, RedisCluster):
                self._masters.clear()  # they may be others now
            raise Silent(type(error).__name__) from None
        for endpoint, value in zip(endpoints, values, strict=True):
            self._take(reading, endpoint, value)
        return reading

    async def _new(
        self, known: Collection[Address], room: int, ignored: Counter[str]
    ) -> set[Address]:
        new: set[Address] = set()
        for _ in range(PAGES):
            if len(new) >= room:
                break
            if not self._masters:
                self._masters, self._cursor = await redis_client.masters(self._redis), 0
            self._cursor, keys = await redis_client.scan(
                self._redis, self._masters[0], self._cursor, f"{registration.PREFIX}*", PAGE
            )
            new.update(each for each in self._ours(keys, ignored) if each not in known)
            if self._cursor == 0:
                del self._masters[0]
            if not self._masters:
                break
        return new

    def _ours(self, keys: Iterable[bytes | str], ignored: Counter[str]) -> Iterable[Address]:
        for key in keys:
            try:
                endpoint = registration.parse_key(key)
            except RegistrationError:
                ignored["malformed"] += 1
                continue
            if self._clusters.owner(endpoint) is None:
                ignored["foreign"] += 1
            else:
                yield endpoint

    async def _values(self, endpoints: Iterable[Address]) -> list[object]:
        pipeline = self._redis.pipeline(transaction=False)
        for endpoint in endpoints:  # a part, as a value may be of any size
            pipeline.getrange(registration.key_of(endpoint), 0, registration.MAX_SIZE)
        values: list[object] = await pipeline.execute(raise_on_error=False)
        return values

    def _take(self, reading: Reading, endpoint: Address, value: object) -> None:
        if value in (b"", ""):
            return  # gone
        try:
            if not isinstance(value, bytes):
                raise RegistrationError("is no text")
            found = registration.parse(value)
        except RegistrationError:
            reading.ignored["malformed"] += 1
            return
        if found.cluster == self._clusters.owner(endpoint):
            reading.found[endpoint] = found
        else:
            reading.ignored["foreign"] += 1
