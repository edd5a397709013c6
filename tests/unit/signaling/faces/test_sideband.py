"""A sideband end to end: OpenAI's own package, signaling, a transceiver and a client's call."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiortc import RTCSessionDescription
from openai import AsyncOpenAI
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from signaling.faces import sideband
from tests.judges import agents_union, openai_types
from tests.realtime_server.script import Script
from tests.realtime_server.server import RealtimeServer
from tests.unit.signaling.fake_transceiver import FakeTransceiver
from tests.unit.signaling.fake_transceiver import signaling as in_process
from tests.unit.signaling.live import (
    API_KEY,
    CONTROL_TOKEN,
    OTHER_KEY,
    LiveSignaling,
    api_key,
    live_signaling,
)
from tests.unit.transceiver.live import Caller, Live, run, serving, until

KEYS = api_key("me", API_KEY) + api_key("you", OTHER_KEY)
Event = dict[str, Any]


@contextlib.asynccontextmanager
async def services(
    tmp_path: Path, sections: str = "", **settings: Any
) -> AsyncIterator[tuple[Live, LiveSignaling]]:
    async with (
        serving(tmp_path, control_token=CONTROL_TOKEN, **settings) as live,
        live_signaling(tmp_path, live.vip, sections) as signaling,
    ):
        live.http.headers["Authorization"] = f"Bearer {CONTROL_TOKEN}"
        yield live, signaling


@contextlib.asynccontextmanager
async def call(
    live: Live, signaling: LiveSignaling, session: Event | None = None
) -> AsyncIterator[tuple[Caller, AsyncOpenAI]]:
    """A call that OpenAI's package began on behalf of a browser."""
    client = AsyncOpenAI(api_key=API_KEY, base_url=f"{signaling.url}/v1")
    caller = Caller(live, "oai-events")
    try:
        await caller.pc.setLocalDescription(await caller.pc.createOffer())
        asked: Any = {"type": "realtime", **(session or {})}
        begun = await client.realtime.calls.create(
            sdp=caller.pc.localDescription.sdp, session=asked
        )
        location = begun.response.headers["location"]
        caller.call_id = location.split("/").pop()
        answer = RTCSessionDescription(begun.text, "answer")
        await caller.pc.setRemoteDescription(answer)
        yield caller, client
    finally:
        await caller.close()
        await client.close()


async def raw(signaling: LiveSignaling, query: str, **more: Any) -> ClientConnection:
    url = signaling.url.replace("http", "ws") + f"/v1/realtime{query}"
    headers = {"Authorization": f"Bearer {API_KEY}"}
    return await connect(url, **{"additional_headers": headers, **more})


async def refusal(signaling: LiveSignaling, query: str, **more: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as caught:
        await raw(signaling, query, **more)
    response = caught.value.response
    assert int(response.headers["content-length"]) == len(response.body or b"")
    return response.status_code, json.loads(response.body or b"")["error"]["code"]


def test_a_server_calls_the_tools_of_a_browsers_call(tmp_path: Path) -> None:
    """The tool's result comes by the sideband, the browser has no part in it."""

    async def scenario() -> None:
        script = Script(reply_s=0.4, pace=20.0)
        async with (
            RealtimeServer(script) as server,
            services(tmp_path, KEYS, backend="realtime", realtime={"url": server.url}) as (
                live,
                signaling,
            ),
            call(live, signaling, {"instructions": "be brief"}) as (caller, client),
        ):
            await caller.connected(20)
            heard: list[Event] = []
            async with client.realtime.connect(call_id=caller.call_id) as connection:

                async def until_type(kind: str) -> Any:
                    async for event in connection:
                        heard.append(json.loads(event.model_dump_json(exclude_unset=True)))
                        if event.type == kind:
                            return event
                    return None

                created = await until_type("session.created")
                assert created.session.instructions == "be brief"
                tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
                await connection.session.update(session={"type": "realtime", "tools": [tool]})  # type: ignore[list-item]
                updated = await until_type("session.updated")
                assert updated.session.tools[0].name == "weather"
                await connection.response.create()
                done = await until_type("response.function_call_arguments.done")
                await until_type("response.done")
                await connection.conversation.item.create(
                    item={
                        "type": "function_call_output",
                        "call_id": done.call_id,
                        "output": "sunny",
                    }
                )
                await until_type("conversation.item.added")
                await connection.response.create()
                done = await until_type("response.done")
                assert done.response.output[0].content[0].type == "output_audio"
                await until(lambda: len(caller.messages) >= len(heard))
                await signaling.http.delete(
                    f"/v1/realtime/calls/{caller.call_id}",
                    headers={"Authorization": f"Bearer {API_KEY}"},
                )
                assert await until_type("never") is None
            told = [event["event_id"] for event in caller.events()]
            seen = [event["event_id"] for event in heard]
            assert seen[1:] == told[told.index(seen[1]) :][: len(seen) - 1]
            assert [openai_types.faults(event) for event in heard] == [[]] * len(heard)
            if agents_union.unavailable() is None:
                assert agents_union.faults(heard) == [[]] * len(heard)

    run(scenario)


def test_who_may_follow(tmp_path: Path) -> None:
    other = {"additional_headers": {"Authorization": f"Bearer {OTHER_KEY}"}}

    async def scenario() -> None:
        async with services(tmp_path, KEYS) as (live, signaling):
            async with call(live, signaling) as (caller, _):
                query = f"?call_id={caller.call_id}"
                wrong = caller.call_id[:-4] + "AAAA"
                assert await refusal(signaling, query, additional_headers={}) == (
                    401,
                    "missing_api_key",
                )
                assert await refusal(signaling, query, **other) == (404, "call_not_found")
                assert await refusal(signaling, f"?call_id={wrong}") == (404, "call_not_found")
                assert await refusal(signaling, "?call_id=rtc_x") == (404, "call_not_found")
                assert await refusal(signaling, "?model=m") == (400, "call_id_needed")
                browser = [f"openai-insecure-api-key.{API_KEY}", "realtime"]
                socket = await raw(
                    signaling,
                    query,
                    additional_headers={},
                    subprotocols=list(map(Subprotocol, browser)),
                )
                assert socket.subprotocol == "realtime"
                for _ in range(3):
                    await raw(signaling, query)
                assert await refusal(signaling, query) == (429, "too_many_sidebands")
                await socket.close()
                await live.http.delete(f"/v1/calls/{caller.call_id}")
                metrics = (await signaling.http.get("/metrics")).text
                assert 'requests_total{face="sideband",status="401"} 1.0' in metrics
                assert await refusal(signaling, query) == (410, "call_ended")
            query = f"?call_id={caller.call_id}"
            await live.transceiver.stop()
            assert await refusal(signaling, query) == (502, "owner_gone")
        log = "\n".join(signaling.told)
        assert "has a sideband" in log
        assert "ERROR" not in log
        secret = caller.call_id[-22:]
        for hidden in (secret, API_KEY, OTHER_KEY, CONTROL_TOKEN, "openai-insecure"):
            assert hidden not in log

    run(scenario)


def test_beta_names_come_when_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            services(tmp_path, KEYS, backend="parrot") as (live, signaling),
            call(live, signaling) as (caller, _),
        ):
            await caller.connected(20)
            query = f"?call_id={caller.call_id}"
            for more in (
                {"subprotocols": ["realtime", "openai-beta.realtime-v1"]},
                {
                    "additional_headers": {
                        "Authorization": f"Bearer {API_KEY}",
                        "OpenAI-Beta": "realtime=v1",
                    }
                },
            ):
                socket = await raw(signaling, query, **more)
                assert "modalities" in json.loads(await socket.recv())["session"]
                await socket.close()
            socket = await raw(signaling, query)
            created = json.loads(await socket.recv())
            assert created["session"]["output_modalities"] == ["audio"]
            assert created["session"]["expires_at"] > 0

    run(scenario)


def test_a_response_too_many_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    """The client and its sideband both want an answer."""

    async def scenario() -> None:
        script = Script(reply_s=1.0, pace=1.0)
        async with (
            RealtimeServer(script) as server,
            services(tmp_path, KEYS, backend="realtime", realtime={"url": server.url}) as (
                live,
                signaling,
            ),
            call(live, signaling) as (caller, client),
        ):
            await caller.connected(20)
            async with client.realtime.connect(call_id=caller.call_id) as connection:
                caller.channel.send('{"type": "response.create", "event_id": "theirs"}')
                async for event in connection:
                    if event.type == "response.created":
                        await connection.send({"type": "response.create", "event_id": "ours"})
                    if event.type == "error":
                        break
                assert event.type == "error"
                assert event.error.code == "conversation_already_has_active_response"
                assert event.error.event_id == "ours"
                async for event in connection:
                    if event.type == "response.done":
                        break
                assert event.type == "response.done"
                assert event.response.status == "completed"

    run(scenario)


def test_the_end_of_the_service_ends_sidebands(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            services(tmp_path, KEYS) as (live, signaling),
            call(live, signaling) as (caller, _),
        ):
            socket = await raw(signaling, f"?call_id={caller.call_id}")
            live.transceiver.calls.end_all()
            async for _ in socket:
                pass
            assert socket.close_code == 1000

    run(scenario)


class Slow:
    """A client whose socket takes nothing."""

    def __init__(self) -> None:
        self.closed: list[int] = []

    def asgi(self) -> WebSocket:
        never = asyncio.Event()

        async def send(message: Any) -> None:
            if message["type"] == "websocket.send":
                await never.wait()
            elif message["type"] == "websocket.close":
                self.closed.append(message["code"])

        async def receive() -> Any:
            if connected:
                await never.wait()
            connected.append(True)
            return {"type": "websocket.connect"}

        connected: list[bool] = []
        scope = {"type": "websocket", "headers": [], "subprotocols": []}
        return WebSocket(scope, receive, send)


@pytest.mark.parametrize(("says", "code"), [(True, 1008), (False, 1011)])
def test_how_a_sideband_ends_for_a_slow_client_and_a_lost_owner(
    says: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sideband, "SEND_S", 0.05)

    async def owner(socket: ServerConnection) -> None:
        if says:
            await socket.send("{}")
            await socket.wait_closed()
        else:
            socket.transport.abort()

    async def scenario() -> None:
        async with serve(owner, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            slow = Slow()
            await sideband._pump(slow.asgi(), await connect(f"ws://127.0.0.1:{port}"), "rtc_x")
            assert slow.closed == [code]

    run(scenario)


def test_there_is_a_bound_for_all_sidebands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sideband, "MAX_SIDEBANDS", 0)

    async def scenario() -> None:
        app, _ = await in_process(FakeTransceiver())
        told: list[Any] = []

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            told.append(message)

        scope = {
            "type": "websocket",
            "path": "/v1/realtime",
            "query_string": b"call_id=rtc_x",
            "headers": [],
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
        }
        await app(scope, receive, send)
        start, body = told
        assert start["status"] == 429
        assert (b"retry-after", b"5") in start["headers"]
        assert json.loads(body["body"])["error"]["code"] == "too_many_sidebands"

    run(scenario)
