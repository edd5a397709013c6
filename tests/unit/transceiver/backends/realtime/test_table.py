import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.transceiver.backends.realtime.rig import OWN, SECOND, STARTED, Rig
from transceiver.backends.realtime.out import Up


def test_the_session_is_introduced_once_with_what_the_server_made_of_it() -> None:
    rig = Rig(ready=False)
    rig.server("conversation.created", conversation={})
    rig.server("session.created", session=OWN)
    rig.server("conversation.created", conversation={})
    assert (rig.told, rig.asked) == ([], ["session.update"])
    assert not rig.table.ready
    rig.server("session.updated", session={**OWN, "voice": "ash"})
    assert rig.told == ["session.created", "conversation.created"]
    assert rig.down[0]["session"] == {**OWN, "voice": "ash"}
    rig.server("session.created", session=OWN)
    rig.server("session.updated", session=OWN)
    assert rig.told[2:] == ["session.updated"]


def test_an_error_before_the_session_is_nobody_elses() -> None:
    rig = Rig(ready=False)
    rig.server("error", error={"message": "Incorrect API key sk-hunter2", "event_id": None})
    assert (rig.up, rig.down) == ([], [])


def test_a_session_that_is_refused_is_the_servers_own_and_the_error_is_passed() -> None:
    rig = Rig(ready=False)
    rig.server("session.created", session=OWN)
    error = {"code": "invalid_value", "message": "no", "event_id": rig.up[0]["event_id"]}
    rig.server("error", error=error)
    assert rig.told == ["session.created", "error"]
    assert rig.down[0]["session"] == OWN
    assert rig.down[1]["error"] == {**error, "event_id": None}


def test_the_clients_update_goes_up_without_formats() -> None:
    rig = Rig()
    audio = {"input": {"format": {"type": "audio/pcmu"}, "x": 1}, "output": {"format": 5}, "y": 2}
    rig.client("session.update", event_id="m", session={"audio": audio, "odd": [None]})
    kept = {"input": {"x": 1}, "output": {}, "y": 2}
    expected = {"event_id": "m", "session": {"audio": kept, "odd": [None]}}
    assert rig.up == [{"type": "session.update", **expected}]


def test_the_operators_model_stays() -> None:
    rig = Rig(model="big")
    rig.client("session.update", session={"model": "small", "voice": "ash"})
    assert rig.up == [{"type": "session.update", "session": {"voice": "ash"}}]


@pytest.mark.parametrize("ready", [False, True])
def test_sound_in_the_names_of_the_beta_api_is_not_passed(ready: bool) -> None:
    rig = Rig(ready=ready)
    rig.server("response.audio.delta", response_id="r", delta="AAAA")
    if not ready:
        rig.server("session.created", session=OWN)
        rig.server("response.audio.delta", response_id="r", delta="AAAA")
        rig.server("session.updated", session=OWN)
    assert "response.audio.delta" not in rig.told


@pytest.mark.parametrize("session", [None, [], {"audio": None}, {"audio": {"input": None}}, 5])
def test_an_odd_update_is_the_servers_to_refuse(session: object) -> None:
    rig = Rig()
    rig.client("session.update", session=session)
    assert rig.up == [{"type": "session.update", "session": session}]


def test_sound_of_the_client_belongs_on_its_track() -> None:
    rig = Rig()
    rig.client("input_audio_buffer.append", event_id="m", audio="")
    (error,) = rig.down
    assert (error["error"]["code"], error["error"]["event_id"]) == ("unsupported_over_webrtc", "m")
    assert rig.up == []


@pytest.mark.parametrize("what", ["started", "stopped", "cleared"])
def test_the_servers_own_buffer_is_not_ours(what: str) -> None:
    rig = Rig()
    rig.server(f"output_audio_buffer.{what}", response_id="r")
    assert rig.down == []


def test_speech_does_not_silence_where_the_session_says_so() -> None:
    session = copy.deepcopy(OWN)
    session["audio"]["input"]["turn_detection"]["interrupt_response"] = False  # type: ignore[index]
    rig = Rig(session)
    rig.reply()
    rig.play(0.03)
    rig.down.clear()
    rig.take(rig.table.server(STARTED, rig.wire.now))
    assert (rig.told, rig.up) == ([STARTED["type"]], [])
    rig.server("session.updated", session=OWN)
    rig.take(rig.table.server(STARTED, rig.wire.now))
    assert rig.told[-1] == "output_audio_buffer.cleared"


def test_a_truncate_of_the_client_silences_and_passes() -> None:
    rig = Rig()
    rig.reply(SECOND * 2)
    rig.play(1.0)
    rig.down.clear()
    truncate = {"item_id": "i1", "content_index": 0, "audio_end_ms": 800}
    rig.client("conversation.item.truncate", **truncate)
    assert rig.told == ["output_audio_buffer.cleared"]
    assert rig.up == [{"type": "conversation.item.truncate", **truncate}]
    assert rig.wire.queued == 0


def test_an_error_about_an_event_of_ours_is_ours() -> None:
    rig = Rig()
    rig.reply()
    rig.play(0.5)
    rig.client("output_audio_buffer.clear")
    rig.down.clear()
    rig.server("error", error={"code": "x", "message": "", "event_id": rig.up[0]["event_id"]})
    assert (rig.down, rig.table.refused) == ([], 1)
    rig.server("error", error={"code": "x", "message": "", "event_id": "the client's"})
    assert rig.told == ["error"]


def test_nobody_waits_for_what_a_lost_server_was_making() -> None:
    rig = Rig()
    rig.reply(SECOND)
    asked = {"type": "response.create", "event_id": "mine"}
    rig.table.sent(asked)
    rig.take(rig.table.lost(rig.wire.now))
    assert rig.told == ["response.done", "error"]
    response = rig.down[0]["response"]
    assert (response["id"], response["status"]) == ("r1", "failed")
    assert response["status_details"]["type"] == "failed"
    assert rig.down[1]["error"]["event_id"] == "mine"
    rig.play(1.1)
    assert rig.told[-1] == "output_audio_buffer.stopped"
    assert rig.wire.sent == 24000
    assert not rig.table.busy


@pytest.mark.parametrize("answer", ["response.created", "error"])
def test_a_response_that_was_answered_is_not_waited_for(answer: str) -> None:
    rig = Rig()
    rig.table.sent({"type": "response.create", "event_id": "mine"})
    rig.server(answer, response={"id": "r"}, error={"event_id": "mine"})
    rig.down.clear()
    rig.take(rig.table.lost(0.0))
    assert "error" not in rig.told


def test_a_new_server_is_told_everything_and_the_client_nothing_again() -> None:
    rig = Rig()
    item = {"id": "u1", "type": "message", "role": "user", "status": "completed"}
    item["content"] = [{"type": "input_text", "text": "hello"}]  # type: ignore[assignment]
    rig.server("conversation.item.added", item=item)
    update = {"type": "session.update", "session": {"instructions": "be brief"}}
    rig.table.sent(update)
    unconfirmed = {"type": "conversation.item.create", "item": {"type": "message", "id": "u2"}}
    rig.table.sent(unconfirmed)
    rig.down.clear()
    rig.take(rig.table.lost(0.0))
    rig.configure({**OWN, "instructions": "be brief"})
    assert rig.asked == ["session.update", *["conversation.item.create"] * 2]
    assert rig.up[0]["session"]["instructions"] == "be brief"
    assert rig.up[1]["item"]["id"] == "u1"
    assert rig.up[2] is unconfirmed
    assert rig.told == ["session.updated"]  # the answer that the lost server owed
    rig.server("conversation.item.added", item=item)
    rig.server("conversation.item.done", item=item)
    rig.server("error", error={"code": "x", "event_id": rig.up[1]["event_id"]})
    assert rig.told == ["session.updated"]
    rig.server("conversation.item.added", item={**item, "id": "u3"})
    assert rig.told[-1] == "conversation.item.added"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
SPECIAL = (
    *("session.created", "session.updated", "session.update", "response.output_audio.delta"),
    *("input_audio_buffer.append", "output_audio_buffer.clear", "conversation.item.truncate"),
    *("response.done", "input_audio_buffer.speech_started", "error"),
)
PASSED = (
    *("response.mcp_call.in_progress", "mcp_list_tools.completed", "rate_limits.updated"),
    *("response.function_call_arguments.done", "response.output_item.done", "something.new"),
    *("conversation.item.retrieved", "response.created", "response.output_audio_transcript.done"),
)


@given(st.sampled_from(PASSED) | st.text(), st.dictionaries(st.text(), json_values, max_size=5))
def test_everything_else_passes_as_it_is_both_ways(kind: str, fields: dict[str, Any]) -> None:
    event = {**fields, "type": kind}
    if kind in SPECIAL or kind.startswith("output_audio_buffer."):
        return
    rig = Rig()
    before = json.dumps(event)
    assert [json.dumps(out.event) for out in rig.table.server(event, 0.0)] == [before]
    assert rig.table.client(event, 0.0) == [Up(event)]
    assert json.dumps(event) == before


FIELDS = (
    *("session", "item", "response", "error", "response_id", "item_id", "delta", "transcript"),
    *("content_index", "audio_end_ms", "event_id", "previous_item_id"),
)


@example("conversation.item.added", {"item": {"id": []}}, True)
@example("conversation.item.added", {"item": {"id": "i"}, "previous_item_id": {}}, True)
@example("error", {"error": {"event_id": []}}, True)
@given(
    st.sampled_from((*SPECIAL, *PASSED, "conversation.item.added")),
    st.dictionaries(
        st.sampled_from(FIELDS),
        json_values
        | st.fixed_dictionaries({"id": json_values, "content": json_values, "audio": json_values}),
    ),
    st.booleans(),
)
def test_no_event_of_a_server_or_client_raises(
    kind: str, fields: dict[str, Any], ready: bool
) -> None:
    rig = Rig(ready=ready)
    event = {**fields, "type": kind}
    rig.take(rig.table.server(event, 0.0))
    rig.take(rig.table.client(event, 0.0))
    rig.table.sent(event)
    rig.take(rig.table.lost(0.0))
    rig.configure(OWN)


KEPT: list[dict[str, Any]] = [
    {
        "id": "a",
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "x"}],
    },
    {"id": "b", "type": "function_call_output", "call_id": "1", "output": "y"},
]


def test_what_is_restored_goes_up_first_and_is_told_once() -> None:
    rig = Rig(ready=False, restored=KEPT)
    rig.server("session.created", session=OWN)
    rig.server("session.updated", session=OWN)
    assert rig.asked == ["session.update", *["conversation.item.create"] * 2]
    assert [event["item"] for event in rig.up[1:]] == KEPT
    pairs = ["conversation.item.added", "conversation.item.done"] * 2
    assert rig.told == ["session.created", *pairs]
    assert [event["item"]["id"] for event in rig.down[1:]] == ["a", "a", "b", "b"]
    for item in KEPT:
        rig.server("conversation.item.added", item=item, previous_item_id=None)
        rig.server("conversation.item.done", item=item, previous_item_id=None)
    assert len(rig.down) == 5
    rig.table.lost(0.0)
    rig.up.clear()
    rig.configure(OWN)
    assert rig.asked == ["session.update", *["conversation.item.create"] * 2]
    assert len(rig.down) == 5


def test_what_is_restored_is_remembered_before_there_is_a_server() -> None:
    rig = Rig(ready=False, restored=KEPT)
    assert rig.table.remembered(0.0).items == KEPT


def test_of_a_reply_that_plays_the_words_that_were_heard_are_remembered() -> None:
    rig = Rig()
    said = {"id": "i1", "type": "message", "role": "assistant", "content": []}
    rig.server("conversation.item.added", item={**said, "status": "in_progress"})
    rig.reply()
    words = "one two three four five six"
    fields = {"item_id": "i1", "content_index": 0, "transcript": words}
    rig.server("response.output_audio_transcript.done", **fields)
    remembered = rig.table.remembered(rig.wire.now)
    assert (remembered.items, remembered.moves) == ([], True)
    rig.wire.run(rig.wire.now + 0.6)
    remembered = rig.table.remembered(rig.wire.now)
    assert [part["text"] for part in remembered.items[0]["content"]] == ["one two three"]
    rig.done()
    rig.wire.run(rig.wire.now + 1.0)
    remembered = rig.table.remembered(rig.wire.now)
    assert [part["text"] for part in remembered.items[0]["content"]] == [words]
    assert not remembered.moves


def test_the_settings_are_what_a_server_would_be_asked_for() -> None:
    rig = Rig()
    rig.table.sent({"type": "session.update", "event_id": "m", "session": {"voice": "ash"}})
    rig.server("session.updated", session={**OWN, "voice": "ash"})
    settings = rig.table.remembered(0.0).session
    assert settings["voice"] == "ash"
    assert "format" not in settings["audio"]["input"]
