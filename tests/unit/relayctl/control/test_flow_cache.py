"""Against a real Redis: single, behind a Sentinel, a Cluster, and one that fails."""

import base64
from collections.abc import AsyncIterator, Iterator

import pytest

from relayctl import cached_flow
from relayctl.cached_flow import hint_name, name_of
from relayctl.control.due_flows import Due, DueFlows
from relayctl.control.flow_cache import OK, REFUSING, SILENT, FlowCache
from relayctl.flow import Flow, FlowKey
from relayctl.messages import Absent, Found, Message, Wanted
from relayctl.wire.redis_client import open_redis
from tests.lab.redis_server import RedisServer

pytestmark = pytest.mark.anyio

SSRC = 77
VALUE = cached_flow.encode(Flow(("10.2.0.2", 5000), 7, 5100, token=b"abcdefgh", ssrc=SSRC))
FIRST = FlowKey(("203.0.113.5", 4000), 1)
MOVED = FlowKey(("203.0.113.6", 4000), 1)
STRANGER = FlowKey(("2001:db8::1", 4000), 2)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(password="pass-word") as server:
        yield server


class Place:
    def __init__(self, url: str) -> None:
        self.redis = open_redis(url)
        self.sent: list[Message] = []
        self.cache = FlowCache(self.redis, DueFlows({}, 0), self.take, lambda: 0)

    def take(self, message: Message) -> bool:
        self.sent.append(message)
        return True


@pytest.fixture
async def place(server: RedisServer) -> AsyncIterator[Place]:
    server.flush()
    place = Place(server.url)
    yield place
    await place.redis.aclose()


async def test_a_new_flow_is_written_with_its_source(place: Place, server: RedisServer) -> None:
    await place.cache._write([Due(FIRST, VALUE, SSRC, is_new=True)])
    for name in (name_of(FIRST), hint_name(1, SSRC)):
        assert await place.redis.get(name) == VALUE
        assert 110 < await place.redis.ttl(name) <= 120
    assert place.cache.state == OK


async def test_an_old_flow_is_kept_and_what_another_relay_wrote_stands(place: Place) -> None:
    other = VALUE[:1] + b"ABCDEFGH" + VALUE[9:]
    await place.redis.set(name_of(FIRST), other, ex=5)
    await place.cache._write([Due(FIRST, VALUE, SSRC, is_new=False)])
    assert await place.redis.get(name_of(FIRST)) == other
    assert await place.redis.ttl(name_of(FIRST)) > 110
    assert await place.redis.get(hint_name(1, SSRC)) == VALUE  # there was none
    assert place.cache.writes == {"written": 0, "refreshed": 1, "refused": 0}  # flows, not keys


async def test_a_flow_that_redis_lost_counts_as_written(place: Place) -> None:
    await place.cache._write([Due(FIRST, VALUE, SSRC, is_new=False)])
    assert await place.redis.get(name_of(FIRST)) == VALUE
    assert place.cache.writes == {"written": 1, "refreshed": 0, "refused": 0}


async def test_orphans_get_their_flow_or_a_hint_or_a_no(place: Place) -> None:
    await place.cache._write([Due(FIRST, VALUE, SSRC, is_new=True)])
    await place.cache._ask([(FIRST, 0), (MOVED, SSRC), (STRANGER, SSRC)])
    found, absent = place.sent
    assert isinstance(found, Found)
    assert isinstance(absent, Absent)
    records = cached_flow.read_records(base64.b64decode(found.records))
    assert list(records) == [(FIRST, VALUE)]
    assert list(cached_flow.read_records(base64.b64decode(found.hinted))) == [(MOVED, VALUE)]
    assert cached_flow.read_keys(base64.b64decode(absent.keys)) == [STRANGER]


async def test_redis_full_and_read_only(
    place: Place, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    for begin in (server.fill, server.read_only):
        begin(True)
        try:
            for _ in range(2):
                await place.cache._write([Due(FIRST, VALUE, SSRC, is_new=True)])
            assert place.cache.state == REFUSING
            await place.cache._ask([(FIRST, 0)])
            assert isinstance(place.sent[-1], Absent | Found)  # it answers still
        finally:
            begin(False)
        await place.cache._write([Due(FIRST, VALUE, SSRC, is_new=True)])
        assert place.cache.state == OK
    assert sum(record.levelname == "WARNING" for record in caplog.records) == 2


async def test_redis_hung_costs_a_line_and_counters(
    place: Place, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.hang()
    try:
        await place.cache._ask([(FIRST, 0)])
        assert place.cache.state == SILENT
        await place.cache._write([Due(FIRST, VALUE, SSRC, is_new=True)])
        place.cache.hear(Wanted(base64.b64encode(cached_flow.pack_wanted(FIRST, 0)).decode()))
    finally:
        server.go_on()
    assert place.cache.lookups["failed"] == place.cache.lookups["dropped"] == 1
    assert place.cache.writes["dropped"] == 1
    await place.cache._write([])
    assert place.cache.state == OK
    assert len(caplog.records) == 1 + ("answers" in caplog.text)
    assert "pass-word" not in caplog.text
