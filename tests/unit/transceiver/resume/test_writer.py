"""Against a real Redis."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from redis.asyncio import Redis

from relayctl.wire.call_id import CallId
from tests.lab.redis_server import RedisServer
from transceiver.lifecycle import End
from transceiver.remembered import Remembered
from transceiver.resume import writer as module
from transceiver.resume.record import KEEP_S, Record, claim_of, key_of, unseal
from transceiver.resume.vault import Vault
from transceiver.resume.writer import Writer

pytestmark = pytest.mark.anyio
PATIENCE_S = 30.0
OLD = CallId("O" * 24, "o" * 22)


class Call:
    def __init__(self, letter: str = "A") -> None:
        self.id = CallId(letter * 24, "s" * 22)
        self.subject = "anna"
        self.reason: End | None = None
        self.resumes: CallId | None = None
        self.connected_once = True
        self.words = "hello"
        self.moves = False

    def remembered(self) -> Remembered:
        item = {"id": "i", "type": "message", "role": "user", "content": [{"text": self.words}]}
        return Remembered({"instructions": "be brief"}, [item], self.moves)


class Place:
    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.counts = Counter[str]()
        self.redis = Redis.from_url(server.url)
        self.writer = Writer(Vault(self.redis), self.counts)

    async def record(self, call_id: CallId) -> Record | None:
        sealed = await self.redis.get(key_of(call_id))
        return unseal(sealed, call_id) if isinstance(sealed, bytes) else None

    async def words(self, call: Call) -> str:
        record = await self.record(call.id)
        return "" if record is None else str(record.items[0]["content"][0]["text"])


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
async def place(server: RedisServer) -> AsyncIterator[Place]:
    place = Place(server)
    place.writer.start()
    yield place
    await place.writer.stop()
    await place.redis.aclose()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def written(place: Place, call: Call, words: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await place.words(call) != words:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_what_comes_together_is_written_once(place: Place) -> None:
    call = Call()
    for _ in range(20):
        place.writer.note(call, {"type": "conversation.item.done"})
    await written(place, call, "hello")
    assert place.counts["written"] == 1
    assert await place.record(call.id) == Record(
        "anna", call.remembered().session, call.remembered().items
    )
    assert KEEP_S - 30 < await place.redis.ttl(key_of(call.id)) <= KEEP_S
    call.words = "more"
    place.writer.note(call, {"type": "response.output_audio_transcript.delta"})
    await asyncio.sleep(0.3)
    assert await place.words(call) == "hello"  # nothing that is to be kept
    place.writer.changed(call)
    await written(place, call, "more")


async def test_while_a_reply_plays_it_is_written_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOVES_S", 0.05)
    call = Call()
    call.moves = True
    place.writer.changed(call)
    await until(lambda: place.counts["written"] > 3)
    call.moves = False
    await asyncio.sleep(0.5)
    before = place.counts["written"]
    await asyncio.sleep(0.5)
    assert place.counts["written"] == before


async def test_a_silent_call_is_kept_and_comes_back_when_redis_was_emptied(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOUCH_S", 0.1)
    monkeypatch.setattr(module, "AGAIN_S", 0.1)
    call = Call()
    place.writer.changed(call)
    await until(lambda: place.counts["touched"] > 2)
    assert place.counts["written"] == 1
    place.server.flush()
    await written(place, call, "hello")


@pytest.mark.parametrize("reason", list(End))
async def test_what_ended_as_it_should_is_forgotten(place: Place, reason: End) -> None:
    call = Call()
    place.writer.changed(call)
    await written(place, call, "hello")
    call.words, call.reason = "last", reason
    place.writer.ended(call)
    call.words = "never"  # a call that has ended is not asked
    if reason is End.RESUMED:  # whoever has it may have claimed it already
        await asyncio.sleep(0.3)
        assert await place.words(call) == "hello"
        return
    await until(lambda: place.counts["dropped"] + place.counts["written"] == 2)
    assert await place.words(call) == ("" if reason in module.PROPER else "last")
    assert {End.HANGUP, End.CLOSED_BY_PEER, End.BACKEND_ENDED, End.EXPIRED} == module.PROPER


async def test_nobody_came(place: Place) -> None:
    call = Call()
    call.connected_once = False
    place.writer.changed(call)
    await written(place, call, "hello")
    call.reason = End.SETUP_TIMEOUT
    place.writer.ended(call)
    await until(lambda: place.counts["dropped"] == 1)
    assert await place.record(call.id) is None


@pytest.mark.parametrize("came", [True, False])
async def test_the_call_that_is_carried_on(place: Place, came: bool) -> None:
    """Given back if nobody came to the new one, which can be resumed itself; gone otherwise."""
    await place.redis.set(claim_of(OLD), 1)
    await place.redis.set(key_of(OLD), b"record")
    call = Call()
    call.resumes, call.connected_once = OLD, came
    place.writer.changed(call)
    await written(place, call, "hello")
    call.reason = End.HANGUP if came else End.SETUP_TIMEOUT
    place.writer.ended(call)
    await until(lambda: place.counts["dropped"] + place.counts["written"] == 3)
    assert await place.redis.exists(claim_of(OLD)) == came
    assert await place.redis.exists(key_of(OLD)) == (not came)
    assert (await place.record(call.id) is None) == came


async def test_flush_writes_now(place: Place) -> None:
    call = Call()
    assert await place.writer.flush(call)
    assert await place.words(call) == "hello"


async def test_a_hung_redis_costs_counts(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.05)
    caplog.set_level(logging.INFO, "transceiver")
    place.server.hang()
    calls = [Call(letter) for letter in "ABCDEFGHIJKLMNOP"]
    for call in calls:
        place.writer.changed(call)
    assert not await place.writer.flush(calls[0])
    await until(lambda: place.counts["failed"] > 8)
    for call in calls:
        call.words = "latest"
        place.writer.changed(call)
    place.server.go_on()
    for call in calls:
        await written(place, call, "latest")
    texts = [record.getMessage() for record in caplog.records]
    assert texts == [
        "redis is silent (TimeoutError): calls cannot be resumed elsewhere",
        "redis answers again: calls can be resumed elsewhere",
    ]


async def test_a_full_redis_costs_counts(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.05)
    await place.redis.config_set("maxmemory", "1")
    call = Call()
    place.writer.changed(call)
    await until(lambda: place.counts["failed"] > 2)
    await place.redis.config_set("maxmemory", "0")
    await written(place, call, "hello")


async def test_last_words_have_a_bound(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LAST_SIZE", 1000)
    place = Place(server)
    for letter in "ABCDEFGHIJ":
        call = Call(letter)
        place.writer.changed(call)
        call.reason = End.SHUTDOWN
        place.writer.ended(call)
    assert 0 < place.counts["overflowed"] < 10
    await place.writer.stop()
    assert place.counts["written"] + place.counts["overflowed"] == 10
    assert await place.words(Call("J")) == "hello"
    assert await place.words(Call("A")) == ""
    await place.redis.aclose()


async def test_a_fault_of_a_call_is_its_own(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    broken, call = Call("B"), Call()
    with contextlib.suppress(AttributeError):
        broken.remembered = lambda: 1 / 0  # type: ignore[assignment,method-assign,return-value]
    place.writer.changed(broken)
    place.writer.changed(call)
    await written(place, call, "hello")
    assert place.counts["failed"] == 1
