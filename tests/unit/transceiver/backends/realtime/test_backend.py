import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.realtime_server import sound
from tests.realtime_server.script import Script
from tests.unit.transceiver.backends.realtime.scene import Scene, scene
from transceiver.lifecycle import End


def run(act: Callable[[Scene], Awaitable[None]], script: Script | None = None, **how: Any) -> None:
    async def played() -> None:
        async with scene(script, **how) as one:
            await act(one)

    asyncio.run(played())


def types(one: Scene) -> list[str]:
    """Told to the client; runs of one type as one."""
    kinds = one.client.types
    return [kind for n, kind in enumerate(kinds) if n == 0 or kinds[n - 1] != kind]


def test_a_spoken_turn_is_answered() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        await one.speak(0.5)
        await one.client.until("output_audio_buffer.stopped")
        kinds = types(one)
        assert kinds[0] == "session.created"
        assert kinds.count("session.created") == 1
        assert "response.output_audio.delta" not in kinds
        for kind in ("input_audio_buffer.speech_started", "response.output_audio.done"):
            assert kind in kinds
        assert kinds.index("output_audio_buffer.started") < kinds.index(
            "output_audio_buffer.stopped"
        )
        heard = b"".join(samples for _, samples in one.wire.frames if samples)
        assert heard.strip(b"\0")[2000:-2000] in sound.tone(0.6)

    run(act, Script(reply_s=0.6, pace=0))


def test_is_configured_once_with_the_sound_as_we_carry_it() -> None:
    async def act(one: Scene) -> None:
        created = await one.client.until("session.created")
        assert created["session"]["instructions"] == "be brief"
        (update,) = one.server.record.events("session.update")
        pcm = {"type": "audio/pcm", "rate": 24000}
        assert update["session"] == {
            "type": "realtime",
            "model": "big",
            "instructions": "be brief",
            "audio": {"input": {"format": pcm}, "output": {"format": pcm, "voice": "ash"}},
        }
        assert one.server.record.paths == ["/v1/realtime?model=big"]
        assert one.server.record.headers[0]["authorization"] == "Bearer hunter2"
        assert "hunter2" not in repr(one.backend._target)

    output = {"voice": "ash", "format": {"type": "audio/pcmu"}}
    asked = {"model": "small", "instructions": "be brief", "audio": {"output": output}}
    run(act, session=asked, model="big", key="hunter2")


def test_gets_ready_before_there_is_sound_and_holds_what_comes_early() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.event("response.create")
        await one.heard(lambda: one.server.record.events("response.create"))
        await asyncio.sleep(0.1)
        assert types(one) == ["session.created"]
        one.begin()
        await one.client.until("output_audio_buffer.stopped")

    run(act, Script(reply_s=0.3, pace=0), begun=False)


def test_each_packet_is_an_append_in_order() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        for _ in range(20):
            one.packet(bytes(960))
        await one.heard(lambda: len(one.server.record.events("input_audio_buffer.append")) == 20)
        appends = one.server.record.events("input_audio_buffer.append")
        assert {append["bytes"] for append in appends} == {960}
        assert one.backend.statistics()["appended"] == 20

    run(act)


def test_a_pause_of_the_client_is_sent_as_silence() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.packet(sound.tone(0.02))
        one.packet(sound.tone(0.02), gap=100)
        await one.heard(lambda: len(one.server.record.audio.get(1, b"")) == 960 * 102)
        appends = one.server.record.events("input_audio_buffer.append")
        assert [append["bytes"] for append in appends] == [960, 48000, 48000, 960]
        assert [append["silent"] for append in appends[1:3]] == [True, True]

    run(act)


def test_nothing_is_appended_while_the_client_is_away() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.backend.pause()
        one.packet(bytes(960))
        one.backend.resume()
        one.packet(bytes(960))
        await one.heard(lambda: one.server.record.events("input_audio_buffer.append"))
        assert one.backend.statistics()["appended"] == 1

    run(act)


def test_speech_silences_a_reply_and_the_server_is_told_what_was_heard() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.event("response.create")
        await one.client.until("response.done")  # all of it waits here
        await one.heard(lambda: one.wire.sent > 24000)
        await one.speak(0.2, 0)
        await one.client.until("input_audio_buffer.speech_started")
        await one.client.until("output_audio_buffer.cleared")
        assert one.wire.queued == 0
        truncated = await one.client.until("conversation.item.truncated")
        assert 1000 - 60 <= truncated["audio_end_ms"] <= one.wire.sent // 24
        assert not one.client.types.count("error")

    run(act, Script(reply_s=30, pace=0))


@pytest.mark.parametrize("dialect", ["ga", "beta"])
def test_a_function_call_round_trip(dialect: Any) -> None:
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object", "π": [1.5, {}]}}

    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.event("session.update", session={"type": "realtime", "tools": [tool]})
        updated = await one.client.until("session.updated")
        assert updated["session"]["tools"] == [tool]
        one.event("response.create")
        called = await one.client.until("response.function_call_arguments.done")
        assert called["arguments"] == '{"city": "Zürich"}'
        item = {"type": "function_call_output", "call_id": called["call_id"], "output": "21 °C ☀"}
        one.event("conversation.item.create", event_id="mine", item=item)
        one.event("response.create")
        await one.client.until("output_audio_buffer.stopped")
        (sent,) = one.server.record.events("conversation.item.create")
        assert sent == {"type": "conversation.item.create", "event_id": "mine", "item": item}
        said = [e.event for e in one.server.record.said if "function_call" in e.type]
        got = [e for e in one.client.said if "function_call" in e["type"]]
        assert got == said

    run(act, Script(reply_s=0.2, dialect=dialect))


def test_a_server_that_hangs_up_ends_the_call_when_all_was_heard() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.event("response.create")
        assert await one.client.gone() is End.BACKEND_ENDED
        done = next(e for e in one.client.said if e["type"] == "response.done")
        assert done["response"]["status"] == "failed"
        assert one.client.types[-1] == "output_audio_buffer.stopped"

    run(act, Script(reply_s=5, hang_up_after_s=0.5))


def test_a_reply_far_ahead_of_its_voice_is_cancelled() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.event("response.create")
        await one.client.code("backend_overrun")
        await one.client.until("response.done")
        assert 119 * 24000 < one.wire.queued <= 120 * 24000
        assert len(one.server.record.events("response.cancel")) == 1
        assert one.backend.statistics()["overruns"] == 1
        one.event("output_audio_buffer.clear")
        await one.client.until("output_audio_buffer.cleared")
        assert one.wire.queued == 0

    run(act, Script(reply_s=180, pace=0, chunk_ms=1000))


def test_a_call_that_ends_lets_last_words_be_heard() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.event("response.create")
        await one.client.until("output_audio_buffer.started")
        one.backend.finish(End.SHUTDOWN, time.monotonic())
        assert await one.client.gone() is End.SHUTDOWN
        assert one.client.types[-1] == "output_audio_buffer.stopped"
        assert one.wire.sent >= 24000 * 0.4

    run(act, Script(reply_s=0.4))


def test_a_call_with_nothing_to_say_ends_at_once() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.backend.finish(End.EXPIRED, time.monotonic())
        assert one.backend.deadline <= time.monotonic()
        assert await one.client.gone() is End.EXPIRED

    run(act)


def test_a_server_that_leaves_the_session_unanswered_is_gone_on_with() -> None:
    async def act(one: Scene) -> None:
        created = await one.client.until("session.created")
        assert created["session"]["id"] == "sess_test"
        one.event("response.create")
        await one.client.until("response.done")

    run(act, Script(ignore_session=True, reply_s=0.1), connect_s=0.2)


def test_a_server_that_refuses_the_session_is_gone_on_with() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        error = (await one.client.code("invalid_value"))["error"]
        assert (error["param"], error["event_id"]) == ("session.instructions", None)

    run(act, Script(refuse_session=True))


def test_garbage_is_counted_and_what_is_unknown_passes() -> None:
    unknown = {
        "type": "new.thing",
        "event_id": "e",
        "n": [1e-7, 12345678901234567890, "\U0001f600"],
    }
    garbage = ("{", "[]", '{"type": 5}', '{"type": "x", "n": NaN}', '{"type": "x", "n": 1e999}')

    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        assert await one.client.until("new.thing") == unknown
        assert one.backend.statistics()["garbage"] == len(garbage)

    run(act, Script(stray=(*garbage, json.dumps(unknown))))
