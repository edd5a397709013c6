"""The flow cache and the preload against every kind of Redis that a URL can name."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from relayctl import cached_flow
from relayctl.cached_flow import hint_name, name_of
from relayctl.control.due_flows import Due, DueFlows
from relayctl.control.flow_cache import OK, FlowCache
from relayctl.control.preload import Preload
from relayctl.flow import Flow, FlowKey
from relayctl.messages import Found, FoundAll, Message, Restored
from relayctl.wire.redis_client import close, open_redis
from tests.lab import redis_kinds
from tests.lab.redis_server import RedisServer

FLOWS = 300  # more than one batch of a scan, and in every slot range of a Cluster
KEYS = [FlowKey((f"203.0.113.{n % 250 + 1}", 4000 + n), 1) for n in range(FLOWS)]
VALUE = cached_flow.encode(Flow(("10.2.0.2", 5000), 7, 5100, token=b"abcdefgh", ssrc=77))
STRANGER = FlowKey(("198.51.100.9", 9), 1)


class Place:
    """A relay's side of Redis."""

    def __init__(self, url: str) -> None:
        self.redis = open_redis(url)
        self.sent: list[Message] = []
        self.cache = FlowCache(self.redis, DueFlows({}, 0), self.take, lambda: 0)
        self.preload = Preload(self.redis, [1], self.take, lambda: True)

    def take(self, message: Message) -> bool:
        self.sent.append(message)
        if isinstance(message, FoundAll):
            self.preload.heard(Restored(FLOWS, 0))
        return True

    async def write(self) -> bool:
        """Whether Redis took all of them."""
        await self.cache._write([Due(key, VALUE, 77, is_new=True) for key in KEYS])
        return self.cache.state == OK

    def found(self) -> dict[FlowKey, bytes]:
        """What came so far."""
        records = (m.records for m in self.sent if isinstance(m, Found))
        return {
            key: value
            for text in records
            for key, value in cached_flow.read_records(base64.b64decode(text))
        }

    async def ask(self, *keys: FlowKey) -> None:
        await self.cache._ask([(key, 0) for key in keys])


@asynccontextmanager
async def at(url: str) -> AsyncIterator[Place]:
    place = Place(url)
    yield place
    await close(place.redis)


@pytest.fixture(scope="module", params=["sentinel", "cluster", "tls"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sentinel":
        with redis_kinds.sentinel() as (url, _):
            yield url
    else:
        with {"cluster": redis_kinds.cluster, "tls": redis_kinds.tls}[request.param]() as url:
            yield url


def test_flows_are_written_kept_and_found(url: str) -> None:
    async def run() -> None:
        async with at(url) as place:
            assert await place.write()
            assert await place.redis.get(name_of(KEYS[0])) == VALUE
            assert await place.redis.get(hint_name(1, 77)) == VALUE
            await place.redis.expire(name_of(KEYS[0]), 5)
            await place.cache._write([Due(KEYS[0], VALUE, 77, is_new=False)])
            assert await place.redis.ttl(name_of(KEYS[0])) > 110
            await place.ask(KEYS[1], STRANGER)
            assert place.found() == {KEYS[1]: VALUE}

    asyncio.run(run())


def test_an_empty_relay_gets_all_of_them(url: str) -> None:
    async def run() -> None:
        async with at(url) as place:
            assert await place.write()
            await place.redis.set(name_of(FlowKey(("203.0.113.1", 1), 2)), VALUE)  # another VIP's
            assert await place.preload.run() == FLOWS
            assert place.found() == dict.fromkeys(KEYS, VALUE)

    asyncio.run(run())


def test_a_replica_takes_over() -> None:
    async def run(url: str, master: RedisServer) -> None:
        async with at(url) as place:
            assert await place.write()
            master.kill()
            for _ in range(600):
                if await place.write():
                    break
                await asyncio.sleep(0.1)
            assert await place.preload.run() == FLOWS
            assert place.found() == dict.fromkeys(KEYS, VALUE)

    with redis_kinds.sentinel() as (url, master):
        asyncio.run(run(url, master))


def test_a_wrong_password_is_a_state_and_no_crash() -> None:
    async def run(url: str) -> None:
        async with at(url.replace(redis_kinds.IN_URL, "wrong")) as place:
            assert not await place.write()

    with redis_kinds.tls() as url:
        asyncio.run(run(url))
