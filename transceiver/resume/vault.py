"""Sealed records in Redis: one method a command, each within its deadline. Thin I/O."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from relayctl.wire import redis_client
from relayctl.wire.call_id import CallId
from relayctl.wire.redis_client import Client
from transceiver.resume.record import CLAIM_S, KEEP_S, claim_of, key_of

WRITE_S = 0.5  # nobody waits for these
ASK_S = 0.4  # a client does, for two of these at most

_UNCLAIM = (
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
)

T = TypeVar("T")


class VaultError(Exception):
    """Redis is away, slow, full or whatever: it did not do it. The message names the kind alone."""


class Vault:
    def __init__(self, redis: Client) -> None:
        self._redis = redis

    async def put(self, key: str, sealed: bytes) -> None:
        """Raises `VaultError`, as all of these do."""
        await _within(WRITE_S, self._redis.set(key, sealed, ex=KEEP_S))

    async def touch(self, key: str) -> bool:
        """Keep it longer. False: it is not there."""
        return bool(await _within(WRITE_S, self._redis.expire(key, KEEP_S)))

    async def drop(self, key: str) -> None:
        await _within(WRITE_S, self._redis.delete(key))

    async def read(self, call_id: CallId) -> tuple[bytes | None, bool]:
        """The record, and whether somebody has claimed it."""
        both = self._redis.mget(key_of(call_id), claim_of(call_id))
        sealed, claim = await _within(ASK_S, both)
        return sealed if isinstance(sealed, bytes) else None, claim is not None

    async def claim(self, call_id: CallId, mine: bytes) -> bool:
        """Whether it was there to be claimed: one of many gets it. `mine`: what no other says."""
        claim = self._redis.set(claim_of(call_id), mine, nx=True, ex=CLAIM_S)
        return bool(await _within(ASK_S, claim))

    async def unclaim(self, call_id: CallId, mine: bytes) -> None:
        """Let go of a claim, if it is this one."""
        await _within(ASK_S, self._redis.eval(_UNCLAIM, 1, claim_of(call_id), mine))

    async def close(self) -> None:
        await redis_client.close(self._redis)


async def _within(seconds: float, answer: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except Exception as error:  # of the client library, which has many
        raise VaultError(type(error).__name__) from None
