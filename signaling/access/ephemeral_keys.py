"""Ephemeral keys: `ek_…`, made for a browser by whoever has an API key; they begin calls only.

A key can be used until it expires; calls live on. It is kept under its digest, never as it is: in
Redis for all replicas, or in this process's memory, which does for one replica only.
"""

import asyncio
import base64
import json
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Protocol, cast

from redis.exceptions import RedisError

from relayctl.wire.redis_client import Client
from signaling.access.api_keys import digest_of
from signaling.session import Session

PREFIX = "ek_"
RANDOM_BYTES = 24  # 32 characters
REDIS_DEADLINE_S = 0.05
MAX_KEPT = 10_000
MAX_KEPT_CHARACTERS = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EphemeralKey:
    """`expires` in unix seconds. `beta`: session and events have the names of the beta API."""

    subject: str
    expires: int
    session: Session = field(default_factory=dict, repr=False)
    beta: bool = False


class KeysUnavailable(Exception):
    """The store does not answer."""


class KeysFull(Exception):
    """The store can keep no more; keys expire."""


class EphemeralKeys(Protocol):
    """Where they are kept. `text` is the key itself, `now` in unix seconds."""

    async def put(self, text: str, key: EphemeralKey, now: float) -> None:
        """Raises `KeysUnavailable`, `KeysFull`."""

    async def get(self, text: str, now: float) -> EphemeralKey | None:
        """None if it never was or has expired. Raises `KeysUnavailable`."""


class InMemory:
    """Of this process. Bounded in number and in size."""

    def __init__(self, max_kept: int = MAX_KEPT, max_characters: int = MAX_KEPT_CHARACTERS) -> None:
        self._max_kept = max_kept
        self._max_characters = max_characters
        self._kept: OrderedDict[str, tuple[int, str]] = OrderedDict()  # name -> expires, text
        self._characters = 0

    async def put(self, text: str, key: EphemeralKey, now: float) -> None:
        rendered = _render(key)
        if self._lacks_room(rendered):
            self._sweep(now)
        if self._lacks_room(rendered):
            raise KeysFull
        self._kept[_name(text)] = (key.expires, rendered)
        self._characters += len(rendered)

    async def get(self, text: str, now: float) -> EphemeralKey | None:
        expires, rendered = self._kept.get(_name(text), (0, ""))
        return _parse(rendered) if now < expires else None

    def _lacks_room(self, rendered: str) -> bool:
        too_many = len(self._kept) >= self._max_kept
        return too_many or self._characters + len(rendered) > self._max_characters

    def _sweep(self, now: float) -> None:
        for name in [name for name, (expires, _) in self._kept.items() if expires <= now]:
            self._characters -= len(self._kept.pop(name)[1])


class InRedis:
    """Of all replicas: `ek:{sha256 in hex}` -> JSON, gone by itself when it expires."""

    def __init__(self, redis: Client, deadline_s: float = REDIS_DEADLINE_S) -> None:
        self._redis = redis
        self._deadline_s = deadline_s

    async def put(self, text: str, key: EphemeralKey, now: float) -> None:
        life_s = max(1, round(key.expires - now))
        await self._answer(self._redis.set(_name(text), _render(key), ex=life_s))

    async def get(self, text: str, now: float) -> EphemeralKey | None:
        rendered = cast(bytes | None, await self._answer(self._redis.get(_name(text))))
        key = _parse(rendered) if rendered is not None else None
        return key if key is not None and now < key.expires else None

    async def _answer(self, command: Awaitable[object]) -> object:
        try:
            async with asyncio.timeout(self._deadline_s):
                return await command
        except (RedisError, OSError, TimeoutError):
            raise KeysUnavailable from None  # the cause may show the URL with its password


def render(randomness: bytes) -> str:
    """The text of a new key, of `RANDOM_BYTES` unpredictable bytes."""
    return PREFIX + base64.urlsafe_b64encode(randomness).decode().rstrip("=")


def _name(text: str) -> str:
    return f"ek:{digest_of(text).hex()}"


def _render(key: EphemeralKey) -> str:
    return json.dumps(
        {
            "subject": key.subject,
            "expires": key.expires,
            "session": key.session,
            "beta": key.beta,
        }
    )


def _parse(rendered: str | bytes) -> EphemeralKey | None:
    """None for what is none of ours: other programs may write to the same Redis."""
    try:
        values = json.loads(rendered)
        key = EphemeralKey(
            str(values["subject"]),
            int(values["expires"]),
            dict(values["session"]),
            values["beta"] is True,
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return key
