import asyncio
import base64
import time
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidStatus

from tests.realtime_server import sound
from tests.realtime_server.script import Script
from tests.realtime_server.server import RealtimeServer
from tests.unit.realtime_server.driver import Driver, driver

SPOKEN = [
    "response.created",
    "rate_limits.updated",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
]
SAID = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]
TURN = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
]


def run(script: Script, act: Callable[[RealtimeServer, Driver], Awaitable[None]]) -> RealtimeServer:
    """`act` with a client whose every event is checked against the published schema."""

    async def scene() -> RealtimeServer:
        async with asyncio.timeout(20), RealtimeServer(script) as server:
            client = await driver(server)
            await client.until("session.created")
            client.heard.clear()
            await act(server, client)
            return server

    return asyncio.run(scene())


def test_a_spoken_turn_is_answered_in_the_published_order() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        await client.speak(0.5)
        await client.until("response.done")
        audio = [e["delta"] for e in client.heard if e["type"] == "response.output_audio.delta"]
        assert b"".join(map(base64.b64decode, audio)) == sound.tone(0.6)
        kinds = [k for k in client.types() if "delta" not in k]
        assert kinds == TURN + SPOKEN + SAID

    server = run(Script(reply_s=0.6, pace=0), act)
    appends = server.record.events("input_audio_buffer.append")
    assert (len(appends), appends[0]["bytes"]) == (55, 960)
    assert bytes(server.record.audio[1][:24000]) == sound.tone(0.5)


def test_transcription_comes_where_it_is_asked_for() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        wanted = {"input": {"transcription": {"model": "any"}}}
        await client.send("session.update", session={"type": "realtime", "audio": wanted})
        updated = await client.until("session.updated")
        assert updated["session"]["audio"]["input"]["turn_detection"]["type"] == "server_vad"
        await client.speak(0.3)
        kind = "conversation.item.input_audio_transcription.completed"
        assert (await client.until(kind))["transcript"] == "hello there"

    run(Script(), act)


def test_another_turn_detection_keeps_no_settings_of_the_last_one() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        semantic = {"type": "semantic_vad", "eagerness": "low"}
        wanted = {"input": {"turn_detection": semantic}}
        await client.send("session.update", session={"type": "realtime", "audio": wanted})
        updated = await client.until("session.updated")
        assert updated["session"]["audio"]["input"]["turn_detection"] == semantic

    run(Script(), act)


def test_push_to_talk() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        off = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}
        await client.send("session.update", session=off)
        await client.until("session.updated")
        await client.send("input_audio_buffer.commit", event_id="mine")
        assert (await client.until("error"))["error"]["event_id"] == "mine"
        await client.speak(0.3)
        client.heard.clear()
        await client.send("input_audio_buffer.commit")
        await client.until("conversation.item.done")
        assert client.types() == TURN[2:]

    run(Script(), act)


def test_a_tool_is_called_and_its_output_answered_with_speech() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
        await client.send("session.update", session={"type": "realtime", "tools": [tool]})
        await client.until("session.updated")
        await client.send("response.create")
        done = await client.until("response.done")
        (call,) = done["response"]["output"]
        assert (call["type"], call["name"]) == ("function_call", "weather")
        assert call["status"] == "completed"
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "21 °C"}
        await client.send("conversation.item.create", item=output)
        await client.send("response.create")
        done = await client.until("response.done")
        assert done["response"]["output"][0]["content"][0]["type"] == "output_audio"

    run(Script(reply_s=0.2), act)


def test_text_alone() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        await client.send("response.create", response={"output_modalities": ["text"]})
        done = await client.until("response.done")
        assert done["response"]["output"][0]["content"][0]["type"] == "output_text"
        assert "response.output_audio.delta" not in client.types()

    run(Script(), act)


def test_one_response_at_a_time_and_cancel() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        await client.send("response.cancel", event_id="early")
        assert (await client.until("error"))["error"]["event_id"] == "early"
        await client.send("response.create")
        await client.until("response.output_audio.delta")
        await client.send("response.create", event_id="second")
        error = (await client.until("error"))["error"]
        assert error["code"] == "conversation_already_has_active_response"
        assert error["event_id"] == "second"
        await client.send("response.cancel")
        response = (await client.until("response.done"))["response"]
        assert response["status"] == "cancelled"
        assert response["status_details"]["reason"] == "client_cancelled"

    run(Script(reply_s=60, pace=1), act)


def test_speech_interrupts_a_response() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        await client.send("response.create")
        await client.until("response.output_audio.delta")
        await client.speak(0.2, 0)
        await client.until("input_audio_buffer.speech_started")
        response = (await client.until("response.done"))["response"]
        assert response["status_details"]["reason"] == "turn_detected"

    run(Script(reply_s=60, pace=1), act)


@pytest.mark.parametrize(
    ("end", "code"),
    [(300, None), (301, "invalid_value"), (0, "invalid_value"), ("1", "invalid_value")],
)
def test_truncate_is_checked(end: object, code: str | None) -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        await client.send("response.create")
        done = await client.until("response.done")
        item_id = done["response"]["output"][0]["id"]
        kind = "conversation.item.truncate"
        await client.send(kind, item_id=item_id, content_index=0, audio_end_ms=end)
        if code is None:
            assert (await client.until(f"{kind}d"))["audio_end_ms"] == end
        else:
            assert (await client.until("error"))["error"]["code"] == code

    run(Script(reply_s=0.3, pace=0), act)


def test_only_a_spoken_reply_can_be_truncated() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}
        await client.send("conversation.item.create", item={"id": "mine", **item})
        await client.until("conversation.item.done")
        await client.send("conversation.item.truncate", item_id="mine", audio_end_ms=1)
        assert (await client.until("error"))["error"]["code"] == "unsupported_content_type"
        await client.send("conversation.item.delete", item_id="mine")
        await client.until("conversation.item.deleted")
        await client.send("conversation.item.retrieve", item_id="mine")
        assert (await client.until("error"))["error"]["code"] == "item_not_found"

    run(Script(), act)


@pytest.mark.parametrize("kind", ["no.such", "output_audio_buffer.clear", ""])
def test_what_is_no_event_of_a_websocket_is_an_error(kind: str) -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        await client.send(kind)
        assert (await client.until("error"))["error"]["code"] == "unknown_event"

    run(Script(), act)


@pytest.mark.parametrize("status", [401, 429, 503])
def test_refuses_as_often_as_told(status: int) -> None:
    async def scene() -> None:
        async with RealtimeServer(Script(refuse=status, fault_times=1)) as server:
            with pytest.raises(InvalidStatus) as caught:
                await connect(server.url)
            assert caught.value.response.status_code == status
            await (await driver(server)).until("session.created")
            assert len(server.record.connects) == 2

    asyncio.run(scene())


@pytest.mark.parametrize("fault", ["never_answer", "mute"])
def test_says_nothing(fault: str) -> None:
    async def scene() -> None:
        async with RealtimeServer(Script.of({fault: True})) as server:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await (await driver(server)).until("session.created")

    asyncio.run(scene())


def test_dies_in_a_reply_once() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        await client.send("response.create")
        with pytest.raises(ConnectionClosed):
            await client.until("response.done")
        again = await driver(server)
        await again.send("response.create")
        await again.until("response.done")

    run(Script(reply_s=1, die_after_s=0.5), act)


def test_hangs_up() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        await client.send("response.create")
        with pytest.raises(ConnectionClosedOK):
            await client.until("response.done")

    run(Script(reply_s=5, hang_up_after_s=0.5), act)


def test_restarts_on_its_port() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        url = server.url
        await server.stop()
        with pytest.raises(ConnectionClosed):
            await client.until("error")
        with pytest.raises(ConnectionRefusedError):
            await connect(url)
        await server.start()
        assert server.url == url
        await (await driver(server)).until("session.created")

    run(Script(), act)


def test_strays_are_said_as_they_are() -> None:
    async def scene() -> None:
        async with RealtimeServer(Script(stray=("{", "[1]"))) as server:
            socket = await connect(server.url)
            assert [await socket.recv() for _ in range(3)][1:] == ["{", "[1]"]

    asyncio.run(scene())


def test_a_slow_pace_takes_its_time() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        began = time.monotonic()
        await client.send("response.create")
        await client.until("response.done")
        assert time.monotonic() - began >= 0.2 / 0.5 - 0.1

    run(Script(reply_s=0.2, pace=0.5, chunk_ms=20), act)


def test_beta_names() -> None:
    async def act(server: RealtimeServer, client: Driver) -> None:
        await client.send("session.update", session={"type": "realtime"})
        await client.until("error")
        await client.send("session.update", session={"modalities": ["text"], "voice": "alloy"})
        session = (await client.until("session.updated"))["session"]
        assert (session["modalities"], session["voice"]) == (["text"], "alloy")
        assert session["input_audio_format"] == "pcm16"
        await client.send("session.update", session={"modalities": ["text", "audio"]})
        await client.until("session.updated")
        client.heard.clear()
        await client.send("response.create")
        done = await client.until("response.done")
        assert done["response"]["output"][0]["content"][0]["type"] == "audio"
        kinds = client.types()
        assert "response.audio.delta" in kinds
        assert "conversation.item.created" in kinds
        assert not [kind for kind in kinds if "output_audio" in kind]

    run(Script(dialect="beta", reply_s=0.2, pace=0), act)
