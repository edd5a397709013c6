"""The events of protocols' normal order, and what clients do out of order."""

import math
from typing import Any

import pytest

from tests.unit.transceiver.session.owner import Owner, error, judge, kinds
from transceiver.session.commands import Commit, Drop

OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "{}"}
TURN = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
]
CREATED = ["response.created", "rate_limits.updated"]
ITEM_ADDED = [
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
]
ITEM_DONE = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
]


def test_a_spoken_turn_and_its_reply_come_in_the_normal_order(owner: Owner) -> None:
    assert kinds(owner.turn()) == [*TURN, *CREATED]
    start = len(owner.events)
    owner.reply()
    owner.drain()
    assert kinds(owner.events[start:]) == [
        *ITEM_ADDED,
        "output_audio_buffer.started",
        "response.output_audio_transcript.delta",
        *ITEM_DONE,
        "response.done",
        "output_audio_buffer.stopped",
    ]
    judge(owner)


def test_one_item_id_runs_through_a_turn(owner: Owner) -> None:
    started, stopped, committed, added, done = owner.turn(start_ms=300, end_ms=1800)[:5]
    assert (started["audio_start_ms"], stopped["audio_end_ms"]) == (300, 1800)
    ids = {started["item_id"], stopped["item_id"], committed["item_id"]}
    assert ids == {added["item"]["id"]} == {done["item"]["id"]}
    assert owner.response.turn_item_id in ids


def test_each_item_names_the_one_before(owner: Owner) -> None:
    first = owner.turn()
    reply = owner.reply()
    owner.drain()
    second = owner.turn()
    assert first[2]["previous_item_id"] is first[3]["previous_item_id"] is None
    assert second[2]["previous_item_id"] == second[3]["previous_item_id"] == reply.item_id
    added = [e for e in owner.events if e["type"] == "conversation.item.added"]
    assert added[1]["previous_item_id"] == first[0]["item_id"]


def test_what_is_not_heard_yet_is_not_told(owner: Owner) -> None:
    """A reply that is made at once does not end before its first sample is out."""
    owner.turn()
    response_id = owner.response.response_id
    owner.do(owner.session.began(response_id))
    assert owner.do(owner.session.transcript(response_id, "words")) == []
    assert owner.do(owner.session.spoken(response_id, 500)) == []
    told = owner.do(owner.session.audible(response_id))
    assert kinds(told)[:2] == [
        "output_audio_buffer.started",
        "response.output_audio_transcript.delta",
    ]
    assert told[-1]["response"]["status"] == "completed"


def test_a_reply_without_sound_ends_at_once(owner: Owner) -> None:
    owner.turn()
    (done,) = owner.do(owner.session.spoken(owner.response.response_id, 0))
    assert done["response"]["status"] == "completed"
    assert done["response"]["output"] == []
    judge(owner)


def test_words_without_sound_are_told_at_the_end(owner: Owner) -> None:
    owner.turn()
    response_id = owner.response.response_id
    assert kinds(owner.do(owner.session.transcript(response_id, "hello"))) == ITEM_ADDED
    told = owner.do(owner.session.spoken(response_id, 0))
    assert kinds(told) == ["response.output_audio_transcript.delta", *ITEM_DONE, "response.done"]
    judge(owner)


def test_words_that_come_while_it_is_heard_are_told_at_once(owner: Owner) -> None:
    owner.turn()
    response_id = owner.response.response_id
    owner.do(owner.session.audible(response_id))
    (delta,) = owner.do(owner.session.transcript(response_id, "one "))
    assert delta["delta"] == "one "
    (delta,) = owner.do(owner.session.transcript(response_id, "two"))
    assert delta["delta"] == "two"
    done = owner.do(owner.session.spoken(response_id, 500))
    assert done[1]["transcript"] == "one two"
    owner.drain()
    judge(owner)


def test_a_text_response_has_no_sound(owner: Owner) -> None:
    owner.write("hello")
    owner.say("response.create", response={"output_modalities": ["text"]})
    response = owner.response
    assert (response.modality, response.text, response.turn_item_id) == ("text", "hello", None)
    start = len(owner.events)
    owner.do(owner.session.text(response.response_id, "you said hello"))
    owner.do(owner.session.spoken(response.response_id))
    assert kinds(owner.events[start:]) == [
        *ITEM_ADDED,
        "response.output_text.delta",
        "response.output_text.done",
        *ITEM_DONE[2:],
        "response.done",
    ]
    assert owner.item(response.item_id)["content"] == [
        {"type": "output_text", "text": "you said hello"}
    ]
    judge(owner)


def test_a_text_response_is_never_heard(owner: Owner) -> None:
    owner.say("response.create", response={"output_modalities": ["text"]})
    assert owner.do(owner.session.audible(owner.response.response_id)) == []


def test_items_come_and_go_where_the_client_wants_them(owner: Owner) -> None:
    added, done = owner.write("first")
    first = added["item"]["id"]
    assert (added["previous_item_id"], done["item"]["status"]) == (None, "completed")
    item = {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "be"}]}
    front = owner.say("conversation.item.create", item=item, previous_item_id="root")[0]
    assert front["previous_item_id"] is None
    between = owner.say(
        "conversation.item.create", item=OUTPUT, previous_item_id=front["item"]["id"]
    )[0]
    assert between["previous_item_id"] == front["item"]["id"]
    assert owner.write("last")[0]["previous_item_id"] == first
    (deleted,) = owner.say("conversation.item.delete", item_id=first)
    assert deleted["item_id"] == first
    assert owner.commands[-1] == Drop(first)
    assert error(owner.say("conversation.item.retrieve", item_id=first))["code"] == "item_not_found"
    judge(owner)


@pytest.mark.parametrize("turned", ["open", "committing", "answering"])
def test_a_client_cannot_take_the_id_of_an_item_that_is_to_come(owner: Owner, turned: str) -> None:
    (started,) = owner.do(owner.session.speech_started(0))
    item_id = started["item_id"]
    if turned == "committing":
        (commit,) = owner.session.event({"type": "input_audio_buffer.commit"}, 100.0)
        assert commit == Commit(item_id)
    elif turned == "answering":
        owner.do(owner.session.speech_stopped(900))
        item_id = owner.response.item_id
    item = {"id": item_id, "type": "function_call_output", "call_id": "c", "output": ""}
    told = error(owner.say("conversation.item.create", item=item))
    assert told["code"] == "item_already_exists"


def test_silence_for_the_idle_time_makes_a_response(owner: Owner) -> None:
    owner.detect({"type": "server_vad", "idle_timeout_ms": 5000})
    assert owner.session.deadline == math.inf
    owner.turn()
    owner.reply()
    assert owner.session.deadline == math.inf
    owner.drain()
    assert owner.session.deadline == -math.inf
    assert owner.session.timer(110.0, heard_ms=9000) == []
    assert owner.session.deadline == 115.0
    assert owner.session.timer(114.9, heard_ms=13900) == []
    told = owner.do(owner.session.timer(115.0, heard_ms=14000))
    assert kinds(told) == ["input_audio_buffer.timeout_triggered", *TURN[2:], *CREATED]
    assert (told[0]["audio_start_ms"], told[0]["audio_end_ms"]) == (9000, 14000)
    assert owner.session.deadline == math.inf
    assert owner.session.committed(told[0]["item_id"], 0) == []
    owner.reply()
    owner.drain()
    judge(owner)


def test_speech_stops_the_idle_time(owner: Owner) -> None:
    owner.detect({"type": "server_vad", "idle_timeout_ms": 5000})
    owner.turn()
    owner.reply()
    owner.drain()
    owner.session.timer(110.0)
    owner.do(owner.session.speech_started(9000))
    assert owner.session.deadline == math.inf
    assert owner.session.timer(200.0) == []


def test_an_echo_makes_no_responses() -> None:
    owner = Owner(responds=False)
    assert owner.session.turn_detection is None
    told = error(owner.say("response.create", event_id="mine"))
    assert (told["code"], told["event_id"]) == ("responses_unsupported", "mine")
    told = error(owner.say("input_audio_buffer.commit"))
    assert told["code"] == "input_audio_buffer_commit_empty"
    owner.detect({"type": "semantic_vad"})
    assert kinds(owner.turn()) == TURN
    judge(owner)


KEPT: list[dict[str, Any]] = [
    {
        "id": "a",
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "x"}],
    },
    {"id": "b", "type": "function_call_output", "call_id": "1", "output": "y"},
]


def test_what_is_restored_is_told_behind_the_session_and_can_be_answered() -> None:
    owner = Owner({"instructions": "be brief"}, restored=[*KEPT, {"id": "c", "type": "odd"}])
    assert kinds(owner.events) == [
        "session.created",
        *["conversation.item.added", "conversation.item.done"] * 2,
    ]
    assert [event["item"]["id"] for event in owner.events[1:]] == ["a", "a", "b", "b"]
    assert [event["previous_item_id"] for event in owner.events[1:]] == [None, None, "a", "a"]
    assert [item["id"] for item in owner.session.items] == ["a", "b"]
    assert owner.say("conversation.item.retrieve", item_id="a")[0]["item"]["id"] == "a"
    judge(owner)


def test_the_settings_can_be_set_again() -> None:
    owner = Owner({"instructions": "be brief"})
    owner.update(tools=[{"type": "function", "name": "f"}], odd={"x": 1})
    again = Owner(owner.session.settings)
    shown = [each.events[-1 if each is owner else 0]["session"] for each in (owner, again)]
    read_only = ("id", "expires_at")
    first, second = ({k: v for k, v in s.items() if k not in read_only} for s in shown)
    assert first == second
