"""Sockets that are none, then real ones: a call's events read and said over a WebSocket."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiortc import RTCSessionDescription
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.judges import agents_union, openai_types
from tests.unit.transceiver.live import Caller, Live, run, serving, until
from transceiver.dialects.realtime import Realtime
from transceiver.events import Event
from transceiver.sideband import MAX_MESSAGE, MAX_MESSAGES_PER_S, MAX_WAITING, Sideband

TOKEN = "control-token-of-the-tests"
AUTH = {"Authorization": f"Bearer {TOKEN}"}


class FakeSocket:
    """Takes messages while `open`; `said` are those that its client says."""

    def __init__(self, *said: str | bytes) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[str] = []
        self.closed: list[int] = []
        for message in said:
            self.say(message)

    def say(self, message: str | bytes) -> None:
        kind = "text" if isinstance(message, str) else "bytes"
        self.incoming.put_nowait({"type": "websocket.receive", kind: message})

    def leave(self) -> None:
        self.incoming.put_nowait({"type": "websocket.disconnect", "code": 1001})

    def asgi(self) -> WebSocket:
        async def send(message: Any) -> None:
            await self.open.wait()
            if message["type"] == "websocket.send":
                self.sent.append(message["text"])
            elif message["type"] == "websocket.close":
                self.closed.append(message["code"])

        self.incoming._queue.appendleft({"type": "websocket.connect"})  # type: ignore[attr-defined]
        return WebSocket({"type": "websocket", "headers": []}, self.incoming.get, send)


class Rig:
    """`naps`: how long the reader slept. The clock stands."""

    def __init__(self, *said: str | bytes) -> None:
        self.socket = FakeSocket(*said)
        self.events: list[Event] = []
        self.naps: list[float] = []
        self.sideband: Sideband

    async def begin(self) -> "asyncio.Task[None]":
        async def sleep(seconds: float) -> None:
            self.naps.append(seconds)
            await asyncio.sleep(0)

        socket = self.socket.asgi()
        await socket.accept()
        self.sideband = Sideband(socket, Realtime(lambda kind: f"{kind}_1"), lambda: 7.25, sleep)
        return asyncio.ensure_future(self.sideband.run(self.events.append))

    @property
    def told(self) -> list[Any]:
        return [json.loads(text) for text in self.socket.sent]


def test_events_go_both_ways_and_the_end_of_the_call_closes() -> None:
    async def scenario() -> None:
        rig = Rig('{"type": "a"}', b'{"type": "b"}', "nonsense")
        running = await rig.begin()
        rig.sideband.told({"type": "x", "n": 0})
        await until(lambda: len(rig.told) == 2)
        assert rig.events == [{"type": "a"}, {"type": "b"}]
        assert rig.told[0] == {"type": "x", "n": 0}
        assert rig.told[1]["error"]["code"] == "invalid_json"
        rig.sideband.told({"type": "x", "n": 1})
        rig.sideband.over()
        rig.sideband.told({"type": "x", "n": 2})
        await running
        assert [event.get("n") for event in rig.told] == [0, None, 1]
        assert rig.socket.closed == [1000]

    asyncio.run(scenario())


def test_a_client_that_leaves_ends_it() -> None:
    async def scenario() -> None:
        rig = Rig()
        running = await rig.begin()
        rig.socket.leave()
        await running

    asyncio.run(scenario())


def test_who_does_not_read_is_let_go_and_holds_up_nobody() -> None:
    async def scenario() -> None:
        rig = Rig()
        running = await rig.begin()
        rig.socket.open.clear()
        event = {"type": "x", "text": "y" * (1 << 20)}
        for _ in range(3):
            rig.sideband.told(event)
        await asyncio.sleep(0.05)
        assert not running.done()
        for _ in range(10):
            rig.sideband.told(event)
        assert rig.sideband._size < MAX_WAITING + len(json.dumps(event)) + 1
        rig.socket.open.set()
        await running
        assert rig.socket.closed == [1008]
        assert not rig.sideband._waiting

    asyncio.run(scenario())


def test_goodbyes_that_nobody_takes_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transceiver.sideband.CLOSE_S", 0.01)

    async def scenario() -> None:
        rig = Rig()
        running = await rig.begin()
        rig.socket.open.clear()
        rig.sideband.told({"type": "x", "text": "y" * (MAX_WAITING + 1)})
        await running
        assert rig.socket.closed == []

    asyncio.run(scenario())


def test_more_messages_than_a_second_may_have_wait() -> None:
    async def scenario() -> None:
        rig = Rig(*['{"type": "a"}'] * (MAX_MESSAGES_PER_S + 2))
        running = await rig.begin()
        rig.socket.leave()
        await running
        assert rig.naps == [0.75, 0.75]
        assert len(rig.events) == MAX_MESSAGES_PER_S + 2

    asyncio.run(scenario())


def test_faults_end_nothing_but_the_sideband(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        def say(event: Event) -> None:
            raise ValueError("broken")

        rig = Rig('{"type": "secret"}')
        socket = rig.socket.asgi()
        await socket.accept()
        sideband = Sideband(socket, Realtime(lambda kind: kind))
        sideband.told({"type": "x", "n": {1, 2}})
        await sideband.run(say)
        assert rig.socket.closed == [1000]

    asyncio.run(scenario())
    assert "fault in a dialect" in caplog.text
    assert "fault in a sideband" in caplog.text
    assert "secret" not in caplog.text


class Reader:
    """A sideband's client."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.heard: list[Event] = []

    async def say(self, **event: Any) -> None:
        await self.socket.send(json.dumps(event))

    async def until(self, kind: str) -> Event:
        while True:
            event: Event = json.loads(await self.socket.recv())
            self.heard.append(event)
            if event["type"] == kind:
                return event


@contextlib.asynccontextmanager
async def sideband(live: Live, call_id: str, query: str = "") -> AsyncIterator[Reader]:
    url = f"ws://{live.vip}/v1/calls/{call_id}/events{query}"
    async with connect(url, additional_headers=AUTH, compression=None) as socket:
        yield Reader(socket)


@contextlib.asynccontextmanager
async def talking(
    tmp_path: Path, label: str = "oai-events", **settings: Any
) -> AsyncIterator[tuple[Live, Caller]]:
    """A transceiver with a call that waits for its client."""
    async with serving(tmp_path, control_token=TOKEN, **settings) as live:
        live.http.headers.update(AUTH)
        caller = Caller(live, label)
        try:
            yield live, await caller.call("realtime")
        finally:
            await caller.close()


def test_a_sideband_and_the_client_hear_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with talking(tmp_path, backend="parrot") as (live, caller):
            await caller.connected(20)
            async with sideband(live, caller.call_id) as reader:
                created = await reader.until("session.created")
                await reader.say(
                    type="session.update", session={"type": "realtime", "instructions": "hush"}
                )
                updated = await reader.until("session.updated")
                item = {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "two words"}],
                }
                await reader.say(type="conversation.item.create", item=item)
                await reader.say(type="response.create")
                done = await reader.until("response.done")
                await reader.say(type="response.cancel", event_id="mine")
                refused = await reader.until("error")
                said = [event["type"] for event in reader.heard[1:]]
                await until(lambda: len(caller.events()) == len(said) + 1)
            assert created["session"]["id"] == updated["session"]["id"]
            assert updated["session"]["instructions"] == "hush"
            assert done["response"]["status"] == "completed"
            assert refused["error"]["event_id"] == "mine"
            assert caller.events()[1:] == reader.heard[1:]
            assert openai_types.faults(created) == []
            if agents_union.unavailable() is None:
                assert agents_union.faults([created, *reader.heard]) == [[]] * (len(said) + 2)

    run(scenario)


def test_what_is_said_before_the_client_comes_is_done_then(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, backend="parrot") as live:
            caller = Caller(live, "oai-events")
            await caller.pc.setLocalDescription(await caller.pc.createOffer())
            created = await live.create(caller.pc.localDescription.sdp, "realtime")
            async with sideband(live, created["id"], "?dialect=realtime-beta") as reader:
                await reader.say(type="session.update", session={"instructions": "hush"})
                answer = RTCSessionDescription(created["answer"], "answer")
                await caller.pc.setRemoteDescription(answer)
                updated = await reader.until("session.updated")
                assert [event["type"] for event in reader.heard] == [
                    "session.created",
                    "session.updated",
                ]
                assert updated["session"]["instructions"] == "hush"
                assert updated["session"]["modalities"] == ["text", "audio"]
                assert (await live.http.delete(f"/v1/calls/{created['id']}")).status_code == 204
                with pytest.raises(ConnectionClosed):
                    await reader.until("never")
                assert reader.socket.close_code == 1000
            await caller.close()

    run(scenario)


def test_who_may_not_follow_is_told_before_the_handshake(tmp_path: Path) -> None:
    async def status(live: Live, path: str, headers: dict[str, str] = AUTH) -> tuple[int, str]:
        with pytest.raises(InvalidStatus) as caught:
            await connect(f"ws://{live.vip}/v1/calls/{path}", additional_headers=headers)
        response = caught.value.response
        return response.status_code, json.loads(response.body or b"{}")["error"]["code"]

    async def scenario() -> None:
        async with talking(tmp_path) as (live, caller):
            path = f"{caller.call_id}/events"
            assert await status(live, path, {}) == (401, "unauthorized")
            assert await status(live, "rtc_x/events") == (404, "call_not_found")
            assert await status(live, f"{path}?subject=other") == (404, "call_not_found")
            assert await status(live, f"{path}?dialect=rtvi") == (400, "unknown_dialect")
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(4):
                    await stack.enter_async_context(sideband(live, caller.call_id, "?subject="))
                assert await status(live, path) == (429, "too_many_sidebands")
            await until(lambda: live.transceiver.calls.find(caller.call_id).watchers == 0)
            await live.http.delete(f"/v1/calls/{caller.call_id}")
            assert await status(live, path) == (410, "call_ended")

    run(scenario)


def test_an_oversized_message_ends_the_sideband_and_not_the_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def scenario() -> None:
        async with talking(tmp_path) as (live, caller):
            async with sideband(live, caller.call_id) as reader:
                await reader.socket.send("x" * (MAX_MESSAGE + 1))
                with pytest.raises(ConnectionClosed):
                    await reader.until("never")
                assert reader.socket.close_code == 1009
            assert (await live.show(caller.call_id))["state"] != "ended"
        assert caller.call_id not in caplog.text

    run(scenario)


def test_one_that_does_not_read_is_dropped_and_the_others_miss_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        # its channel is for no events: it would be too slow for so many
        async with talking(tmp_path, "other", backend="parrot") as (live, caller):
            await caller.connected(20)
            url = f"ws://{live.vip}/v1/calls/{caller.call_id}/events"
            idle = await connect(url, additional_headers=AUTH, compression=None, max_queue=1)
            try:
                await crowded_out(live, caller)
            finally:
                idle.transport.abort()  # uvloop waits for it without end when it closes

    async def crowded_out(live: Live, caller: Caller) -> None:
        call = live.transceiver.calls.find(caller.call_id)
        async with sideband(live, caller.call_id) as reader:
            await reader.until("session.created")
            session = {"type": "realtime", "instructions": "x" * 50_000}
            count = 0
            while call.watchers == 2:
                await reader.say(type="session.update", session=session)
                await reader.until("session.updated")
                count += 1
                assert count < 1000  # 50 MB
            assert len(reader.heard) == count + 1
        assert (await live.show(caller.call_id))["state"] == "connected"

    run(scenario)
