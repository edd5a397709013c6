"""Against a real Redis."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator

import pytest
from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from relayctl.wire.registration import Registration, key_of, parse
from tests.lab.redis_server import RedisServer
from transceiver import registration
from transceiver.registration import Registrar

pytestmark = pytest.mark.anyio
ENDPOINT = ("10.2.0.2", 5000)
KEY = key_of(ENDPOINT)
PATIENCE_S = 30.0


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


class Process:
    """A process with figures, and its registrar."""

    def __init__(self, server: RedisServer) -> None:
        self.figures = Registration(7, 0, 10)
        self.counts = Counter[str]()
        redis = Redis.from_url(server.url)
        self.registrar = Registrar(redis, ENDPOINT, lambda: self.figures, self.counts)


def stored(client: BlockingRedis) -> Registration | None:
    text = client.get(KEY)
    return None if text is None else parse(str(text).encode())


async def counted(process: Process, result: str, more: int = 1) -> None:
    """Until so many more tries ended so."""
    wanted = process.counts[result] + more
    async with asyncio.timeout(PATIENCE_S):
        while process.counts[result] < wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_writes_its_key_again_and_again(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "EVERY_S", 0.05)
    process = Process(server)
    process.registrar.start()
    await counted(process, "written")
    with server.client() as client:
        assert stored(client) == Registration(7, 0, 10)
        assert client.ttl(KEY) in range(1, 6)
        process.figures = Registration(7, 3, 10)
        await counted(process, "written", 2)
        assert stored(client) == process.figures
        server.flush()
        await counted(process, "written", 2)
        assert stored(client) == process.figures
        await process.registrar.stop()
        assert stored(client) is None


async def test_tells_at_once(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "EVERY_S", 3600.0)
    process = Process(server)
    process.registrar.start()
    await counted(process, "written")
    process.figures = Registration(7, 3, 10, draining=True)
    process.registrar.tell()
    await counted(process, "written")
    with server.client() as client:
        assert stored(client) == process.figures
    await process.registrar.stop()


async def test_stops_although_there_is_something_to_tell(server: RedisServer) -> None:
    process = Process(server)
    process.registrar.start()
    await counted(process, "written")
    process.registrar.tell()
    async with asyncio.timeout(PATIENCE_S):
        await process.registrar.stop()


async def test_a_hung_redis_is_left_alone(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "transceiver")
    monkeypatch.setattr(registration, "EVERY_S", 0.05)
    process = Process(server)
    process.registrar.start()
    await counted(process, "written")
    server.hang()
    await counted(process, "failed", 3)
    server.go_on()
    await counted(process, "written", 3)
    messages = [record.message for record in caplog.records]
    assert messages[0] == "redis is silent (TimeoutError): out of the registry"
    assert messages[1] == "redis answers again: back in the registry"
    server.hang()
    async with asyncio.timeout(PATIENCE_S):
        await process.registrar.stop()
    server.go_on()


async def test_nobody_there_at_the_start(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "EVERY_S", 0.05)
    process = Process(server)
    server.kill()
    process.registrar.start()
    await counted(process, "failed", 3)
    server.start()
    await counted(process, "written")
    await process.registrar.stop()
