import asyncio
import json
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from signaling.access.api_keys import digest_of
from signaling.access.ephemeral_keys import (
    EphemeralKey,
    InMemory,
    InRedis,
    KeysFull,
    KeysUnavailable,
    render,
)

pytestmark = pytest.mark.anyio
NOW = 1_800_000_000.0
TEXT = "ek_abc"
KEY = EphemeralKey("shop", int(NOW) + 60, {"instructions": "be \ud83d brief"}, beta=True)


class FakeRedis:
    """Keeps what is set; `fault` is raised instead, and `silent` never answers."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.lives: list[int] = []
        self.fault: Exception | None = None
        self.silent = False

    async def set(self, name: str, value: str, ex: int) -> None:
        await self._act()
        self.kept[name] = value.encode()
        self.lives.append(ex)

    async def get(self, name: str) -> bytes | None:
        await self._act()
        return self.kept.get(name)

    async def _act(self) -> None:
        if self.silent:
            await asyncio.Event().wait()
        if self.fault:
            raise self.fault


def in_redis(fake: FakeRedis) -> InRedis:
    return InRedis(cast(Redis, fake), deadline_s=0.01 if fake.silent else 10)


def test_a_new_key_shows_all_its_randomness() -> None:
    assert render(bytes(24)) == "ek_" + "A" * 32
    assert len(render(bytes(range(24)))) == 35


async def test_in_memory_until_it_expires() -> None:
    keys = InMemory()
    await keys.put(TEXT, KEY, NOW)
    assert await keys.get(TEXT, NOW) == KEY
    assert await keys.get(TEXT, NOW + 59) == KEY  # as often as one likes
    assert await keys.get(TEXT, NOW + 60) is None
    assert await keys.get("ek_other", NOW) is None


async def test_memory_is_bounded_in_number() -> None:
    keys = InMemory(max_kept=2)
    for name in "ab":
        await keys.put(name, KEY, NOW)
    with pytest.raises(KeysFull):
        await keys.put("c", KEY, NOW)
    assert await keys.get("a", NOW) == KEY
    await keys.put("c", EphemeralKey("shop", int(NOW) + 99), NOW + 60)  # those have expired
    assert await keys.get("c", NOW + 60) is not None


async def test_memory_is_bounded_in_size() -> None:
    keys = InMemory(max_characters=2500)
    big = EphemeralKey("shop", int(NOW) + 60, {"instructions": "x" * 1000})
    for name in "ab":
        await keys.put(name, big, NOW)
    with pytest.raises(KeysFull):
        await keys.put("c", big, NOW)
    for round in range(1, 5):  # sizes are given back
        later = NOW + 60 * round
        fresh = EphemeralKey("shop", int(later) + 60, big.session)
        for name in "ab":
            await keys.put(f"{name}{round}", fresh, later)


async def test_in_redis_under_the_digest_for_its_life() -> None:
    fake = FakeRedis()
    keys = in_redis(fake)
    await keys.put(TEXT, KEY, NOW)
    (name,) = fake.kept
    assert name == "ek:" + digest_of(TEXT).hex()
    assert TEXT not in name
    assert TEXT.encode() not in fake.kept[name]
    assert fake.lives == [60]
    assert await keys.get(TEXT, NOW) == KEY
    assert await keys.get(TEXT, NOW + 60) is None  # should Redis be late
    assert await keys.get("ek_other", NOW) is None


@pytest.mark.parametrize("fault", [RedisConnectionError("redis://u:password@h"), OSError(), None])
async def test_a_redis_that_fails_or_is_silent(fault: Exception | None) -> None:
    fake = FakeRedis()
    fake.fault, fake.silent = fault, fault is None
    keys = in_redis(fake)
    with pytest.raises(KeysUnavailable) as caught:
        await keys.get(TEXT, NOW)
    assert caught.value.__suppress_context__
    with pytest.raises(KeysUnavailable):
        await keys.put(TEXT, KEY, NOW)


GOOD: dict[str, Any] = {"subject": "a", "expires": int(NOW) + 9, "session": {}, "beta": False}


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        json.dumps(GOOD | {"session": 5}).encode(),
        json.dumps(GOOD | {"expires": "soon"}).encode(),
        json.dumps(GOOD | {"expires": None}).encode(),
        json.dumps(GOOD | {"expires": float("inf")}).encode(),
    ],
)
async def test_what_others_wrote_is_no_key(value: bytes) -> None:
    fake = FakeRedis()
    keys = in_redis(fake)
    await keys.put(TEXT, KEY, NOW)
    (name,) = fake.kept
    fake.kept[name] = value
    assert await keys.get(TEXT, NOW) is None


def test_a_session_is_not_shown() -> None:
    assert "brief" not in repr(KEY)
