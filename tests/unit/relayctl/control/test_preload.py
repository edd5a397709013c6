"""Preload: what of Redis reaches the pipe, at which pace, and that Redis cannot hold a relay up."""

import asyncio
import base64
import fnmatch
import logging
from collections.abc import Callable
from typing import cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from relayctl.cached_flow import RECORD_KEY, VALUE, encode, name_of
from relayctl.control import preload
from relayctl.control.preload import Preload
from relayctl.flow import Flow, FlowKey
from relayctl.messages import PER_PART, Found, FoundAll, Message, Restored
from relayctl.wire.address import Address

VALUE_OF_FLOW = encode(Flow(("10.2.0.2", 5000), 7, 0, b"IWwJ+/iU"))
RECORD = RECORD_KEY.size + VALUE.size
CLIENT, CLIENT_6 = ("198.51.100.7", 40000), ("2001:db8:7::7", 40001)


pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class FakeRedis:
    """A server as `Preload` asks it; a scan takes two steps."""

    def __init__(self, content: dict[bytes, bytes]) -> None:
        self.content = content
        self.hangs = self.dies = False

    async def scan(self, cursor: int, match: str, count: int) -> tuple[int, list[bytes]]:
        if self.dies:
            raise RedisConnectionError("gone")
        if self.hangs:
            await asyncio.Event().wait()
        assert count == preload.AT_ONCE
        names = [
            n for n in sorted(self.content) if fnmatch.fnmatch(n.decode(errors="replace"), match)
        ]
        half = len(names) // 2
        return (0, names[half:]) if cursor else (7, names[:half])

    async def mget(self, names: list[bytes]) -> list[bytes | None]:
        return [self.content.get(name) for name in names]


class Pipe:
    def __init__(self) -> None:
        self.sent: list[Found] = []
        self.full = 0  # looks that find no room
        self.answers = True
        self.heard: Callable[[Restored], None]

    def has_room(self) -> bool:
        self.full -= 1
        return self.full < 0

    def send(self, message: Message) -> bool:
        if isinstance(message, Found):
            self.sent.append(message)
        elif self.answers:
            assert isinstance(message, FoundAll)
            self.heard(Restored(len(self.records()), 0))
        return True

    def records(self) -> list[bytes]:
        joined = b"".join(base64.b64decode(each.records) for each in self.sent)
        return [joined[at : at + RECORD] for at in range(0, len(joined), RECORD)]

    def keys(self) -> set[bytes]:
        return {key[:size] for size, key in map(RECORD_KEY.unpack_from, self.records())}


def flows(*clients: Address, vip: int = 1) -> dict[bytes, bytes]:
    return {name_of(FlowKey(client, vip)).encode(): VALUE_OF_FLOW for client in clients}


def a_preload(content: dict[bytes, bytes]) -> tuple[Preload, FakeRedis, Pipe]:
    redis, pipe = FakeRedis(content), Pipe()
    loader = Preload(cast(Redis, redis), [1, 2], pipe.send, pipe.has_room)
    pipe.heard = loader.heard
    return loader, redis, pipe


def many(count: int) -> dict[bytes, bytes]:
    return flows(*(("198.51.100.7", 1024 + n) for n in range(count)))


async def test_flows_of_both_families_and_of_our_vips_only() -> None:
    foreign = flows(("198.51.100.9", 1), vip=3) | flows(("198.51.100.9", 1), vip=12)
    content = flows(CLIENT) | flows(CLIENT_6, vip=2) | foreign | {b"hint:{1:00000001}": b"x" * 33}
    loader, _, pipe = a_preload(content)
    assert await loader.run() == 2
    assert pipe.keys() == {FlowKey(CLIENT, 1), FlowKey(CLIENT_6, 2)}
    assert all(record[RECORD_KEY.size :] == VALUE_OF_FLOW for record in pipe.records())


@pytest.mark.parametrize(
    "name",
    [b"", b"1.2.3", b"1.2.3.4", b"1.2.3.4:", b"1.2.3.4:65536", b"1.2.3.4:-1", b"[::1]", b"\xff:1"],
)
async def test_a_name_that_is_no_clients_is_left_out(name: bytes) -> None:
    loader, redis, pipe = a_preload(flows(CLIENT))
    redis.content |= {b"flow:{1:" + name + b"}": VALUE_OF_FLOW}
    assert await loader.run() == 1
    assert pipe.keys() == {FlowKey(CLIENT, 1)}


async def test_a_value_of_another_size_is_left_out() -> None:
    loader, redis, pipe = a_preload(flows(CLIENT))
    redis.content |= {b"flow:{1:1.2.3.4:5}": b"short", b"flow:{1:1.2.3.4:6}": b"x" * 4000}
    assert await loader.run() == 1
    assert pipe.keys() == {FlowKey(CLIENT, 1)}


async def test_messages_are_small_and_wait_for_room() -> None:
    loader, _, pipe = a_preload(many(3 * PER_PART))
    pipe.full = 5
    assert await loader.run() == 3 * PER_PART
    assert len(pipe.keys()) == 3 * PER_PART
    assert max(len(each.records) for each in pipe.sent) <= PER_PART * RECORD * 4 / 3 + 4


@pytest.mark.parametrize("is_empty", [True, False])
async def test_an_empty_relay_is_loading_until_all_is_sent(is_empty: bool) -> None:
    loader, _, pipe = a_preload(many(4))
    pipe.full = 1_000_000
    task = asyncio.create_task(loader.serve(is_empty, dict))
    for _ in range(10):
        await asyncio.sleep(0)
    assert loader.is_loading is is_empty
    pipe.full = 0
    for _ in range(1000):
        await asyncio.sleep(0.001 * loader.is_loading)
    assert len(pipe.records()) == 4 * is_empty
    task.cancel()


@pytest.mark.parametrize("fault", ["hangs", "dies"])
async def test_redis_cannot_hold_a_relay_up(
    fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(preload, "SILENT_S", 0.01)
    loader, redis, pipe = a_preload(flows(CLIENT))
    setattr(redis, fault, True)
    with caplog.at_level(logging.INFO):
        assert await loader.run() == 0
    assert pipe.sent == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_packet_process_that_takes_nothing_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "DEADLINE_S", 0.02)
    loader, _, pipe = a_preload(many(4))
    pipe.full = 1_000_000_000
    assert await loader.run() == 0
    assert pipe.sent == []


async def test_it_is_loading_until_the_packet_process_is_done() -> None:
    loader, _, pipe = a_preload(many(4))
    pipe.answers = False
    task = asyncio.create_task(loader.serve(True, dict))
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(pipe.records()) == 4
    assert loader.is_loading
    loader.heard(Restored(4, 0))
    loader.heard(Restored(4, 0))  # one that nobody waits for
    for _ in range(10):
        await asyncio.sleep(0)
    assert not loader.is_loading
    task.cancel()


async def test_one_line_tells_count_and_time(caplog: pytest.LogCaptureFixture) -> None:
    loader, _, _ = a_preload(many(4))
    with caplog.at_level(logging.INFO):
        await loader.run()
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("redis gave 4 flows in ")


@pytest.mark.parametrize(("rate", "runs"), [(1_000_000, 1), (0, 0)])
async def test_a_rush_of_orphans_fetches_again_after_a_pause(
    rate: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preload, "LOOK_S", 0.01)
    loader, _, pipe = a_preload(flows(CLIENT))
    total = 0

    def orphans() -> int:
        nonlocal total
        total += rate
        return total

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(loader.again(orphans), 0.2)
    assert len(pipe.sent) == runs
