"""Against a real Redis."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from relayctl.wire.address import Address
from relayctl.wire.registration import MAX_SIZE, Registration, key_of
from signaling.fleet import announcements
from signaling.fleet.announcements import PAGE, Announcements, Silent
from tests.lab.redis_server import RedisServer
from tests.unit.signaling.fake_transceiver import configuration

pytestmark = pytest.mark.anyio
CLUSTERS = configuration().routing()
ENDPOINT = ("10.2.0.2", 5000)
GOOD = Registration(7, 1, 10)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
async def redis(server: RedisServer) -> AsyncIterator[Redis]:
    server.flush()
    client = Redis.from_url(server.url)
    yield client
    await client.aclose()


async def test_finds_and_follows(redis: Redis) -> None:
    reader = Announcements(redis, CLUSTERS)
    assert (await reader.read([])).found == {}
    await redis.set(key_of(ENDPOINT), GOOD.render(), ex=5)
    reading = await reader.read([])
    assert reading.found == {ENDPOINT: GOOD}
    assert not reading.ignored
    assert (await reader.read([ENDPOINT])).found == {ENDPOINT: GOOD}
    await redis.delete(key_of(ENDPOINT))
    assert (await reader.read([ENDPOINT])).found == {}


async def test_what_is_none_of_ours(redis: Redis) -> None:
    await redis.mset(
        {
            "transceiver:": GOOD.render(),
            "transceiver:{10.2.0.2:05000}": GOOD.render(),
            key_of(("198.51.100.1", 5000)): GOOD.render(),
            key_of(("10.2.0.2", 80)): GOOD.render(),
            key_of(("10.2.0.2", 5001)): Registration(8, 1, 10).render(),
            key_of(("10.2.0.2", 5002)): "{",
            key_of(("10.2.0.2", 5003)): GOOD.render() + " " * MAX_SIZE,
            key_of(("10.2.0.2", 5004)): b"\xff" * 5_000_000,
        }
    )
    await redis.rpush(key_of(("10.2.0.2", 5005)), "a list")
    await redis.set(key_of(ENDPOINT), GOOD.render())
    reading = await Announcements(redis, CLUSTERS).read([])
    assert reading.found == {ENDPOINT: GOOD}
    assert reading.ignored == {"malformed": 6, "foreign": 3}


async def test_among_very_many_keys_every_one_has_its_turn(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcements, "PAGES", 2)
    monkeypatch.setattr(announcements, "DEADLINE_S", 60.0)
    many = {("10.2.0.3", port): GOOD for port in range(10_000, 10_000 + 6 * PAGE)}
    await redis.mset({key_of(endpoint): GOOD.render() for endpoint in many})
    await redis.mset({f"flow:{n}": "x" for n in range(6 * PAGE)})
    reader, found, readings = Announcements(redis, CLUSTERS), set[Address](), 0
    while found != many.keys() and readings < 40:
        readings += 1
        new = (await reader.read([], room=10**6)).found
        assert len(new) < 2 * PAGE + 100
        found |= new.keys()
    assert found == many.keys()
    assert readings > 3
    reader = Announcements(redis, CLUSTERS)
    assert (await reader.read([], room=0)).found == {}


async def test_a_hung_redis_is_silent_and_then_heard(
    server: RedisServer, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcements, "DEADLINE_S", 0.1)
    reader = Announcements(redis, CLUSTERS)
    await redis.set(key_of(ENDPOINT), GOOD.render())
    server.hang()
    try:
        for _ in range(3):
            with pytest.raises(Silent, match="TimeoutError"):
                await reader.read([ENDPOINT])
    finally:
        server.go_on()
    monkeypatch.setattr(announcements, "DEADLINE_S", 60.0)
    for _ in range(3):  # no answer of before is taken for one of now
        reading = await reader.read([ENDPOINT])
        assert reading.found == {ENDPOINT: GOOD}


async def test_a_dead_redis_is_silent_and_a_new_one_is_heard() -> None:
    with RedisServer(password="quite-secret") as server:
        client = Redis.from_url(server.url)
        reader = Announcements(client, CLUSTERS)
        await reader.read([])
        server.kill()
        with pytest.raises(Silent) as caught:
            await reader.read([])
        assert "quite-secret" not in str(caught.value)
        server.start()
        async with asyncio.timeout(60):
            assert (await reader.read([])).found == {}
        await client.aclose()


async def test_a_wrong_password_is_silence() -> None:
    with RedisServer(password="quite-secret") as server:
        client = Redis.from_url(server.url.replace("quite-secret", "wrong"))
        with pytest.raises(Silent, match="Authentication"):
            await Announcements(client, CLUSTERS).read([])
        await client.aclose()
