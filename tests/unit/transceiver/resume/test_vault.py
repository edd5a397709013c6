"""Against a real Redis."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from relayctl.wire.call_id import CallId
from tests.lab.redis_server import RedisServer
from transceiver.resume.record import KEEP_S, claim_of, key_of
from transceiver.resume.vault import Vault, VaultError

pytestmark = pytest.mark.anyio
ID = CallId("A" * 24, "s" * 22)
KEY = key_of(ID)


@pytest.fixture
async def redis() -> AsyncIterator[Redis]:
    with RedisServer() as server:
        redis = Redis.from_url(server.url)
        yield redis
        await redis.aclose()


async def test_a_record_is_put_read_touched_and_dropped(redis: Redis) -> None:
    vault = Vault(redis)
    assert await vault.read(ID) == (None, False)
    assert not await vault.touch(KEY)
    await vault.put(KEY, b"\x00\xff")
    assert await vault.read(ID) == (b"\x00\xff", False)
    await redis.expire(KEY, 5)
    assert await vault.touch(KEY)
    assert KEEP_S - 30 < await redis.ttl(KEY) <= KEEP_S
    await vault.drop(KEY)
    assert await vault.read(ID) == (None, False)


async def test_a_claim_is_had_once_and_outlives_every_record(redis: Redis) -> None:
    vault = Vault(redis)
    assert [await vault.claim(ID, b"a"), await vault.claim(ID, b"b")] == [True, False]
    assert await vault.read(ID) == (None, True)
    assert await redis.ttl(claim_of(ID)) > KEEP_S + 60
    await vault.unclaim(ID, b"b")
    assert await vault.read(ID) == (None, True)
    await vault.unclaim(ID, b"a")
    assert await vault.read(ID) == (None, False)


async def test_a_fault_names_its_kind_alone(redis: Redis) -> None:
    await redis.config_set("maxmemory", "1")
    with pytest.raises(VaultError) as caught:
        await Vault(redis).put(KEY, b"secret")
    assert str(caught.value) == "OutOfMemoryError"
