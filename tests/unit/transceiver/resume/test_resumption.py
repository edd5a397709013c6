"""Against a real Redis."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from relayctl.wire.call_id import CallId
from tests.lab.redis_server import RedisServer
from transceiver.resume import vault
from transceiver.resume.record import CLAIM_S, Record, claim_of, key_of, render, seal
from transceiver.resume.resumption import Reason, Resumed, ResumeError, Resumption
from transceiver.resume.vault import Vault, VaultError
from transceiver.resume.writer import Writer

pytestmark = pytest.mark.anyio
ID = CallId("A" * 24, "s" * 22)
RECORD = Record("anna", {"instructions": "x"}, [{"id": "i", "type": "message"}])


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


class Place:
    def __init__(self, server: RedisServer) -> None:
        self.redis = Redis.from_url(server.url)
        self.counts = Counter[str]()
        store = Vault(self.redis)
        self.resumption = Resumption(store, Writer(store, Counter()), self.counts)

    async def put(self, record: Record = RECORD) -> None:
        await self.redis.set(key_of(ID), seal(render(record)[0], ID, os.urandom), ex=600)

    async def refusal(self, text: str = ID.render(), subject: str = "anna") -> Reason:
        with pytest.raises(ResumeError) as caught:
            await self.resumption.take(text, subject)
        assert self.counts[caught.value.reason] >= 1
        assert ID.secret not in str(caught.value)
        return caught.value.reason


@pytest.fixture
async def place(server: RedisServer) -> AsyncIterator[Place]:
    place = Place(server)
    yield place
    await place.redis.aclose()


async def test_a_call_is_carried_on_once(place: Place) -> None:
    await place.put()
    assert await place.resumption.take(ID.render(), "anna") == Resumed(ID, RECORD)
    assert await place.refusal() == "already_resumed"
    assert 600 < await place.redis.ttl(claim_of(ID)) <= CLAIM_S
    await place.redis.delete(key_of(ID))
    assert await place.refusal() == "already_resumed"  # whatever became of its record


async def test_one_of_many_gets_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "ASK_S", 20.0)  # twenty new connections at once
    await place.put()
    tries = [place.resumption.take(ID.render(), "anna") for _ in range(20)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(each, Resumed) for each in results) == 1
    assert place.counts == {"resumed": 1, "already_resumed": 19}


async def test_what_could_not_be_made_is_given_back(place: Place) -> None:
    await place.put()
    taken = await place.resumption.take(ID.render(), "anna")
    await place.resumption.release(taken)
    assert await place.resumption.take(ID.render(), "anna") == taken


async def test_a_claim_whose_answer_got_lost_is_not_burnt(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = Vault.claim

    async def lost(self: Vault, call_id: CallId, mine: bytes) -> bool:
        await claim(self, call_id, mine)
        raise VaultError("TimeoutError")

    await place.put()
    monkeypatch.setattr(Vault, "claim", lost)
    assert await place.refusal() == "resume_unavailable"
    monkeypatch.undo()
    await place.resumption.take(ID.render(), "anna")


async def test_nothing_is_kept_of_it(place: Place) -> None:
    assert await place.refusal() == "resume_expired"
    await place.put()
    other = CallId(ID.token, "t" * 22)
    assert await place.refusal(other.render()) == "resume_expired"


@pytest.mark.parametrize("text", ["", "rtc_", "x" * 300])
async def test_garbled_ids_are_nobodys(place: Place, text: str) -> None:
    assert await place.refusal(text) == "call_not_found"


@pytest.mark.parametrize("subject", ["", "Anna", "bert"])
async def test_another_subject_learns_nothing_and_burns_nothing(place: Place, subject: str) -> None:
    await place.put()
    assert await place.refusal(subject=subject) == "call_not_found"
    assert await place.redis.exists(claim_of(ID)) == 0


async def test_a_broken_record_is_none_and_its_claim_is_not_burnt(place: Place) -> None:
    await place.put()
    sealed = await place.redis.get(key_of(ID))
    assert isinstance(sealed, bytes)
    await place.redis.set(key_of(ID), sealed[:-1] + bytes([sealed[-1] ^ 1]))
    assert await place.refusal() == "resume_expired"
    await place.put()
    await place.resumption.take(ID.render(), "anna")


@pytest.mark.parametrize("fault", ["kill", "hang", "full"])
async def test_without_the_store_there_is_no_resume(
    place: Place, server: RedisServer, fault: str
) -> None:
    await place.put()
    if fault == "full":
        await place.redis.config_set("maxmemory", "1")
    else:
        getattr(server, fault)()
    assert await place.refusal() == "resume_unavailable"
    if fault == "hang":
        server.go_on()


async def test_nothing_is_kept_at_all() -> None:
    resumption = Resumption(None, None, Counter())
    with pytest.raises(ResumeError) as caught:
        await resumption.take(ID.render(), "")
    assert caught.value.reason is Reason.UNAVAILABLE
