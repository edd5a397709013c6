import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from tests.realtime_server.script import Script
from tests.realtime_server.server import RealtimeServer
from tests.unit.transceiver.backends.realtime.scene import Scene, scene
from transceiver.backends.realtime.upstream import Upstream

KEY = "sk-hunter2"


def run(act: Callable[[Scene], Awaitable[None]], script: Script | None = None, **how: Any) -> None:
    async def played() -> None:
        async with scene(script, **how) as one:
            await act(one)

    asyncio.run(played())


def codes(one: Scene) -> list[str]:
    return [event["error"]["code"] for event in one.client.said if event["type"] == "error"]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (Script(refuse=401, fault_times=2), "backend_unavailable"),
        (Script(refuse=403, fault_times=2), "backend_unavailable"),
        (Script(refuse=404, fault_times=2), "backend_unavailable"),
        (Script(refuse=429, fault_times=2), "backend_overloaded"),
        (Script(refuse=503, fault_times=2), "backend_overloaded"),
        (Script(never_answer=True, fault_times=2), "backend_unavailable"),
        (Script(mute=True, fault_times=2), "backend_unavailable"),
    ],
)
def test_a_server_that_cannot_be_had_is_told_once_and_tried_again(
    script: Script, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        assert codes(one) == [code]
        assert len(one.server.record.connects) >= 3
        one.event("response.create")
        await one.client.until("response.done")

    with caplog.at_level(logging.DEBUG):
        run(act, script, connect_s=5.0 if script.refuse else 0.5, key=KEY)
    told = [record.getMessage() for record in caplog.records if record.name.startswith("transc")]
    assert len(told) == 2
    assert re.search(r" at 127\.0\.0\.1:\d+: (HTTP \d+|nothing said)", told[0])
    assert re.fullmatch(r"127\.0\.0\.1:\d+: back after \d+\.\d s", told[1])
    assert ("backend_unauthorized" in told[0]) == (script.refuse in (401, 403))
    ours = [record.getMessage() for record in caplog.records if record.name != "websockets.server"]
    assert KEY not in "\n".join(ours)


def test_a_server_that_sends_us_elsewhere_is_not_followed() -> None:
    """Whoever it names would get all headers, and what is said."""

    async def played() -> None:
        async with RealtimeServer() as other:
            script = Script(refuse=302, location=other.url)
            async with scene(script, key=KEY, headers={"api-key": KEY}) as one:
                await one.heard(lambda: len(one.server.record.connects) > 1)
                assert codes(one) == ["backend_unavailable"]
            assert other.record.connects == []

    asyncio.run(played())


def test_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        await one.server.stop()
        await one.client.code("backend_unavailable")
        await asyncio.sleep(1.2)
        assert codes(one) == ["backend_unavailable"]
        await one.server.start()
        await one.client.code("backend_reconnected")
        assert codes(one) == ["backend_unavailable", "backend_reconnected"]
        assert one.backend.statistics()["reconnects"] == 1

    run(act)
    assert "lost, code 1006" in caplog.text


def test_a_reply_that_dies_is_done_and_what_came_of_it_is_heard() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.event("response.create")
        done = await one.client.until("response.done")
        assert done["response"]["status"] == "failed"
        await one.client.until("output_audio_buffer.stopped")
        assert one.wire.sent >= 24000 * 0.5
        await one.client.code("backend_reconnected")
        one.event("response.create")
        assert (await one.client.until("response.done"))["response"]["status"] == "completed"

    run(act, Script(reply_s=1, pace=10, die_after_s=0.5))


def test_a_server_that_comes_back_is_told_all_of_it_in_order() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.event("session.update", session={"type": "realtime", "instructions": "be brief"})
        await one.client.until("session.updated")
        hello = [{"type": "input_text", "text": "hello"}]
        item = {"type": "message", "role": "user", "content": hello}
        one.event("conversation.item.create", item=item)
        one.event("response.create")
        await one.client.until("response.done")
        one.server.drop()
        await one.client.code("backend_unavailable")
        for _ in range(5):
            one.packet(bytes(960))
        one.event("response.create", event_id="late")
        one.packet(bytes(960))
        await one.client.code("backend_reconnected")
        await one.client.until("response.done")
        await one.heard(lambda: len(one.server.record.audio.get(2, b"")) == 6 * 960)
        again = [e for e in one.server.record.received if e.connection == 2]
        assert [e.type for e in again[:4]] == [
            "session.update",
            "conversation.item.create",
            "conversation.item.create",
            "input_audio_buffer.append",
        ]
        assert again[0].event["session"]["instructions"] == "be brief"
        texts = [e.event["item"]["content"] for e in again[1:3]]
        said = one.server.script.transcript
        assert texts == [hello, [{"type": "output_text", "text": said}]]
        kinds = [e.type for e in again[3:]]
        append = "input_audio_buffer.append"
        assert kinds == [*[append] * 5, "response.create", append]
        for kind in ("session.created", "conversation.item.added"):
            told = [e for e in one.client.said if e["type"] == kind]
            ids = [e.get("item", {}).get("id") for e in told]
            assert len(set(ids)) == len(ids)

    run(act, Script(reply_s=0.1, pace=0))


def test_a_server_that_reads_slowly_gets_all_events_and_bounded_sound() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        for _ in range(1200):
            one.packet(bytes(960))
        one.event("conversation.item.retrieve", event_id="last", item_id="none")
        error = await one.client.code("item_not_found")
        assert error["error"]["event_id"] == "last"
        statistics = one.backend.statistics()
        assert statistics["dropped"] > 0
        received = len(one.server.record.events("input_audio_buffer.append"))
        assert received == statistics["appended"] - statistics["dropped"] >= 500

    run(act, Script(deaf_after_s=0.0, deaf_s=0.3))


def test_too_many_events_for_a_server_that_is_away_are_refused_one_by_one() -> None:
    async def act(one: Scene) -> None:
        await one.client.code("backend_overloaded")
        for n in range(53):
            one.event("response.cancel", event_id=f"mine {n}")
        refused = [e["error"]["event_id"] for e in one.client.said[1:]]
        assert refused == ["mine 50", "mine 51", "mine 52"]

    run(act, Script(refuse=503))


def test_ends_with_its_call() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.close()
        await one.heard(lambda: not one.server.connections)

    run(act)


def test_a_call_that_ends_as_its_server_is_lost_does_not_connect_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[Callable[[], None]] = []
    write = Upstream._write

    async def write_and_end(self: Upstream, socket: ClientConnection) -> None:
        try:
            await write(self, socket)
        finally:
            for end in ends:
                end()

    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        ends.append(one.close)
        one.server.drop()
        task, connects = one.backend._upstream._task, one.server.record.connects
        await one.heard(lambda: task.done() or len(connects) > 1)
        task.cancel()
        assert len(connects) == 1

    monkeypatch.setattr(Upstream, "_write", write_and_end)
    run(act)


def test_a_server_that_reads_no_more_holds_nothing_of_a_call_that_has_ended() -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        for _ in range(100):
            one.event("conversation.item.create", item={"text": "x" * 200_000})
            await asyncio.sleep(0.002)
        one.close()
        await asyncio.wait([one.backend._upstream._task])
        assert one.server.record.events("conversation.item.create") == []  # it is deaf yet

    run(act, Script(deaf_after_s=0.0, deaf_s=8.0))


def test_a_fault_of_ours_ends_the_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(one: Scene) -> None:
        await one.client.until("session.created")

        def fail(*_: object) -> None:
            raise RuntimeError("ours")

        monkeypatch.setattr(one.backend._table, "server", fail)
        one.event("response.create")
        assert await one.client.gone() == "internal_error"

    run(act)
    assert "ours" in caplog.text


def test_a_server_may_be_too_loud() -> None:
    """One message above 16 MiB ends the connection, and the call stays."""

    async def act(one: Scene) -> None:
        await one.client.code("backend_unavailable")
        one.server.script = Script()
        await one.client.until("session.created")

    run(act, Script(stray=("x" * (17 << 20),)), begun=True)


def test_beginning_is_timed() -> None:
    async def act(one: Scene) -> None:
        assert "connect_ms" not in one.backend.statistics()
        began = time.monotonic()
        await one.client.until("session.created")
        assert 0 <= one.backend.statistics()["connect_ms"] <= 1000 * (time.monotonic() - began) + 50

    run(act)


def test_what_is_said_to_a_dying_server_is_answered() -> None:
    """A response that was asked for and never begun is an error with the id of its event."""

    async def act(one: Scene) -> None:
        await one.client.until("session.created")
        one.event("response.create", event_id="first")
        await one.client.until("response.created")
        one.event("response.create", event_id="second")
        await one.client.code("conversation_already_has_active_response")
        one.event("response.cancel")
        await one.client.until("response.done")
        server: RealtimeServer = one.server
        connection = server.connections[0]
        connection.conversation.event = lambda event: None  # type: ignore[method-assign]
        one.event("response.create", event_id="third")
        await one.heard(lambda: len(server.record.events("response.create")) == 3)
        server.drop()
        await one.heard(lambda: "backend_reconnected" in codes(one))
        errors = [e["error"] for e in one.client.said if e["type"] == "error"]
        unanswered = [e["event_id"] for e in errors if e["code"] == "backend_unavailable"]
        assert sorted(unanswered, key=str) == [None, "third"]

    run(act, Script(reply_s=60, pace=1))
