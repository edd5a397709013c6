"""The events of protocols' normal order, and what clients do out of order."""

import math
from typing import Any

import pytest

from tests.judges import openai_types, order
from tests.unit.transceiver.session.owner import Owner, abandoned, error, kinds
from transceiver.session.commands import Clear, Commit, Cut, Detect, Drop, Forget, Truncate

TRANSCRIPTION = {"input": {"transcription": {"model": "gpt-4o-mini-transcribe"}}}
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


@pytest.fixture
def owner() -> Owner:
    return Owner()


def judge(owner: Owner, ended: bool = True) -> None:
    """Every event is one of OpenAI's, and in its place."""
    assert [fault for event in owner.events for fault in openai_types.faults(event)] == []
    assert order.faults(owner.events, ended=ended) == []


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


def test_barge_in_cuts_what_is_heard(owner: Owner) -> None:
    owner.turn()
    reply = owner.reply(heard_ms=500)
    told = owner.do(owner.session.speech_started(2000))
    assert kinds(told) == [
        "input_audio_buffer.speech_started",
        "output_audio_buffer.cleared",
        "conversation.item.truncated",
    ]
    assert (told[2]["item_id"], told[2]["audio_end_ms"]) == (reply.item_id, 500)
    assert Truncate(reply.item_id, 500) in owner.commands
    assert owner.item(reply.item_id)["content"][0]["transcript"] == "one two"
    judge(owner)


def test_barge_in_into_a_response_that_is_still_made_cancels_it(owner: Owner) -> None:
    owner.turn()
    response = owner.response
    owner.do(owner.session.audible(response.response_id))
    owner.do(owner.session.transcript(response.response_id, "one two three four"))
    owner.playing = Cut(response.response_id, response.item_id, 0, 500, 1000)
    told = owner.do(owner.session.speech_started(2000))
    assert kinds(told) == [
        "input_audio_buffer.speech_started",
        "output_audio_buffer.cleared",
        *ITEM_DONE,
        "response.done",
        "conversation.item.truncated",
    ]
    done = told[-2]["response"]
    assert done["status"] == "cancelled"
    assert done["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    assert told[3]["transcript"] == "one two"
    assert owner.item(response.item_id)["content"][0]["transcript"] == "one two"
    assert owner.item(response.item_id)["status"] == "incomplete"
    assert abandoned(owner) == [response.response_id]
    assert owner.do(owner.session.transcript(response.response_id, "stale")) == []
    assert owner.do(owner.session.spoken(response.response_id, 9000)) == []
    judge(owner)


def test_a_cut_before_anything_was_heard_truncates_nothing(owner: Owner) -> None:
    """livekit/agents#6157: the item is kept, its transcript is empty."""
    owner.turn()
    reply = owner.reply(heard_ms=0)
    told = owner.do(owner.session.speech_started(2000))
    assert kinds(told) == ["input_audio_buffer.speech_started", "output_audio_buffer.cleared"]
    assert owner.item(reply.item_id)["content"][0]["transcript"] == ""
    judge(owner)


def test_speech_while_nothing_is_heard_cuts_nothing(owner: Owner) -> None:
    owner.turn()
    owner.reply()
    owner.drain()
    assert kinds(owner.do(owner.session.speech_started(5000))) == TURN[:1]
    assert Clear() not in owner.commands


def test_speech_does_not_interrupt_when_it_may_not(owner: Owner) -> None:
    owner.detect({"type": "server_vad", "interrupt_response": False})
    owner.turn()
    owner.reply()
    assert kinds(owner.do(owner.session.speech_started(2000))) == TURN[:1]
    assert Clear() not in owner.commands


def test_speech_that_resumes_goes_on_in_its_turn(owner: Owner) -> None:
    first = owner.turn()
    pending = owner.response.response_id
    owner.do(owner.session.began(pending))
    owner.do(owner.session.spoken(pending, 700))
    told = owner.do(owner.session.speech_resumed(1300))
    assert told[0]["type"] == "input_audio_buffer.speech_started"
    assert told[0]["item_id"] == first[0]["item_id"]
    assert told[-1]["response"]["status_details"]["reason"] == "turn_detected"
    assert abandoned(owner) == [pending]
    again = owner.do(owner.session.speech_stopped(2600))
    assert kinds(again) == ["input_audio_buffer.speech_stopped", *CREATED]
    assert owner.response.turn_item_id == first[0]["item_id"]
    owner.reply()
    owner.drain()
    judge(owner)


def test_the_owner_may_flush_by_itself(owner: Owner) -> None:
    owner.turn()
    reply = owner.reply()
    told = owner.do(owner.session.cut(Cut(reply.response_id, reply.item_id, 0, 300, 1000)))
    assert kinds(told) == ["output_audio_buffer.cleared", "conversation.item.truncated"]
    assert owner.do(owner.session.cut(None)) == []


def test_only_one_response_is_active(owner: Owner) -> None:
    owner.turn()
    active = owner.response
    told = error(owner.say("response.create", event_id="mine"))
    assert told["code"] == "conversation_already_has_active_response"
    assert told["event_id"] == "mine"
    assert owner.response == active
    owner.reply()
    owner.drain()
    judge(owner)


def test_a_response_can_be_cancelled(owner: Owner) -> None:
    owner.turn()
    response = owner.response
    owner.do(owner.session.audible(response.response_id))
    owner.playing = Cut(response.response_id, response.item_id, 0, 200, 400)
    told = owner.say("response.cancel", response_id=response.response_id)
    assert kinds(told)[0] == "output_audio_buffer.cleared"
    assert told[-2]["response"]["status_details"]["reason"] == "client_cancelled"
    judge(owner)


@pytest.mark.parametrize("fields", [{}, {"response_id": "resp_none"}])
def test_cancelling_nothing_is_an_error_and_changes_nothing(
    owner: Owner, fields: dict[str, str]
) -> None:
    owner.turn()
    owner.reply()
    told = error(owner.say("response.cancel", event_id="mine", **fields))
    assert (told["code"], told["event_id"]) == ("response_cancel_not_active", "mine")
    assert Clear() not in owner.commands
    owner.drain()
    judge(owner)


def test_the_output_can_be_cleared(owner: Owner) -> None:
    owner.turn()
    owner.reply(heard_ms=250)
    told = owner.say("output_audio_buffer.clear")
    assert kinds(told) == ["output_audio_buffer.cleared", "conversation.item.truncated"]
    assert owner.say("output_audio_buffer.clear") == []
    judge(owner)


def test_a_client_can_truncate_what_it_hears_by_its_own_count(owner: Owner) -> None:
    owner.turn()
    reply = owner.reply(heard_ms=500)
    told = owner.say("conversation.item.truncate", item_id=reply.item_id, audio_end_ms=800)
    assert kinds(told) == ["output_audio_buffer.cleared", "conversation.item.truncated"]
    assert told[1]["audio_end_ms"] == 800
    assert owner.item(reply.item_id)["content"][0]["transcript"] == "one two three"
    judge(owner)


def test_a_client_can_truncate_to_nothing(owner: Owner) -> None:
    owner.turn()
    reply = owner.reply(heard_ms=0)
    told = owner.say("conversation.item.truncate", item_id=reply.item_id, audio_end_ms=0)
    assert kinds(told) == ["output_audio_buffer.cleared", "conversation.item.truncated"]


def test_truncating_beyond_the_sound_is_an_error(owner: Owner) -> None:
    """What is heard falls silent all the same, and is cut where it was heard."""
    owner.turn()
    reply = owner.reply(heard_ms=500)
    fields: dict[str, Any] = {"item_id": reply.item_id, "audio_end_ms": 1001, "event_id": "mine"}
    told = owner.say("conversation.item.truncate", **fields)
    assert kinds(told) == ["output_audio_buffer.cleared", "conversation.item.truncated", "error"]
    assert told[1]["audio_end_ms"] == 500
    assert (told[2]["error"]["code"], told[2]["error"]["event_id"]) == ("invalid_value", "mine")
    judge(owner)


def test_a_reply_that_was_heard_can_be_truncated_later(owner: Owner) -> None:
    owner.turn()
    reply = owner.reply(audio_ms=1000)
    owner.drain()
    fields: dict[str, Any] = {"item_id": reply.item_id, "content_index": 0}
    told = error(owner.say("conversation.item.truncate", audio_end_ms=1001, **fields))
    assert told["code"] == "invalid_value"
    (truncated,) = owner.say("conversation.item.truncate", audio_end_ms=500, **fields)
    assert truncated["audio_end_ms"] == 500
    assert owner.item(reply.item_id)["content"][0]["transcript"] == "one two"
    told = error(owner.say("conversation.item.truncate", audio_end_ms=501, **fields))
    assert told["code"] == "invalid_value"
    assert Clear() not in owner.commands


def test_only_spoken_replies_can_be_truncated(owner: Owner) -> None:
    turn = owner.turn()
    owner.reply()
    owner.drain()
    fields: dict[str, Any] = {"item_id": turn[0]["item_id"], "content_index": 0, "audio_end_ms": 10}
    told = error(owner.say("conversation.item.truncate", **fields))
    assert told["code"] == "unsupported_content_type"
    fields["item_id"] = "item_none"
    assert error(owner.say("conversation.item.truncate", **fields))["code"] == "item_not_found"


def test_the_end_of_its_sound_is_the_end_of_a_response(owner: Owner) -> None:
    owner.turn()
    owner.do(owner.session.audible(owner.response.response_id))
    told = owner.drain()
    assert kinds(told)[-2:] == ["response.done", "output_audio_buffer.stopped"]
    judge(owner)


def test_a_text_reply_that_is_made_is_not_truncated(owner: Owner) -> None:
    owner.say("response.create", response={"output_modalities": ["text"]})
    response = owner.response
    owner.do(owner.session.began(response.response_id))
    fields: dict[str, Any] = {"item_id": response.item_id, "audio_end_ms": 0}
    told = error(owner.say("conversation.item.truncate", **fields))
    assert told["code"] == "unsupported_content_type"
    assert abandoned(owner) == []


def test_another_response_than_the_active_one_is_not_cancelled(owner: Owner) -> None:
    owner.turn()
    told = error(owner.say("response.cancel", response_id="resp_none"))
    assert told["code"] == "response_cancel_not_active"
    assert abandoned(owner) == []


@pytest.mark.parametrize("made", [True, False])
def test_a_reply_has_one_part_only(owner: Owner, made: bool) -> None:
    owner.turn()
    reply = owner.response
    if made:
        owner.reply()
    else:
        owner.do(owner.session.began(reply.response_id))
    fields: dict[str, Any] = {"item_id": reply.item_id, "audio_end_ms": 0, "content_index": 1}
    told = error(owner.say("conversation.item.truncate", **fields))
    assert told["code"] == "unsupported_content_type"
    assert Clear() not in owner.commands


def test_a_failed_response_says_why(owner: Owner) -> None:
    owner.turn()
    (done,) = owner.do(owner.session.failed(owner.response.response_id, "worn_out", "no voice"))
    assert done["response"]["status"] == "failed"
    assert done["response"]["status_details"]["error"]["code"] == "worn_out"
    judge(owner)


def test_every_update_is_answered(owner: Owner) -> None:
    for changes in (
        {"tracing": "auto"},
        {"tracing": None},
        {"audio": {"input": {"noise_reduction": None, "turn_detection": {"type": "semantic_vad"}}}},
        {},
    ):
        (updated,) = owner.update(**changes)
        assert updated["type"] == "session.updated"
    judge(owner)


def test_a_change_of_turn_detection_is_handed_on(owner: Owner) -> None:
    owner.detect({"type": "semantic_vad", "eagerness": "low"})
    owner.detect({"type": "semantic_vad", "eagerness": "low"})
    owner.detect(None)
    detects = [command for command in owner.commands if isinstance(command, Detect)]
    types = [each.turn_detection and each.turn_detection["type"] for each in detects]
    assert types == ["server_vad", "semantic_vad", None]
    assert owner.session.turn_detection is None


def test_what_the_maker_of_the_call_asked_for_holds_from_the_start() -> None:
    owner = Owner({"instructions": "hi", "audio": {"input": {"turn_detection": None}}})
    (created,) = owner.events
    assert created["session"]["instructions"] == "hi"
    assert owner.commands == [Detect(None)]


def test_a_wrong_wish_of_the_maker_of_the_call_is_told() -> None:
    owner = Owner({"instructions": 5})
    created, told = owner.events
    assert created["session"]["instructions"] == ""
    assert told["error"]["param"] == "session.instructions"
    judge(owner)


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({}, "unknown_event"),
        ({"type": 5}, "unknown_event"),
        ({"type": "nonsense"}, "unknown_event"),
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "unsupported_over_webrtc"),
        ({"type": "session.update"}, "invalid_value"),
        ({"type": "session.update", "session": {"type": "transcription"}}, "invalid_value"),
        ({"type": "conversation.item.create"}, "invalid_value"),
        (
            {"type": "conversation.item.create", "item": OUTPUT, "previous_item_id": ["root"]},
            "invalid_value",
        ),
        (
            {"type": "conversation.item.create", "item": OUTPUT, "previous_item_id": "x"},
            "item_not_found",
        ),
        ({"type": "conversation.item.retrieve"}, "invalid_value"),
        ({"type": "conversation.item.retrieve", "item_id": "x"}, "item_not_found"),
        ({"type": "conversation.item.delete", "item_id": "x"}, "item_not_found"),
        ({"type": "conversation.item.truncate", "item_id": "x"}, "invalid_value"),
        ({"type": "response.create", "response": []}, "invalid_value"),
    ],
)
def test_an_error_names_the_event_that_caused_it(
    owner: Owner, event: dict[str, object], code: str
) -> None:
    told = error(owner.do(owner.session.event({"event_id": "mine", **event}, 100.0)))
    assert (told["code"], told["event_id"]) == (code, "mine")
    judge(owner)


def test_an_event_without_a_type_hears_that_it_has_none(owner: Owner) -> None:
    assert "the event has no type" in error(owner.do(owner.session.event({}, 100.0)))["message"]


def test_a_client_commits_its_own_turns() -> None:
    owner = Owner({"audio": {"input": {"turn_detection": None}}})
    assert owner.do(owner.session.speech_started(0)) == []
    told = owner.say("input_audio_buffer.commit")
    assert kinds(told) == TURN[2:]
    owner.say("response.create")
    assert owner.response.turn_item_id == told[0]["item_id"]
    owner.reply()
    owner.drain()
    judge(owner)


def test_an_empty_commit_is_an_error() -> None:
    owner = Owner({"audio": {"input": {"turn_detection": None}}})
    owner.heard_ms = 0
    told = error(owner.say("input_audio_buffer.commit", event_id="mine"))
    assert (told["code"], told["event_id"]) == ("input_audio_buffer_commit_empty", "mine")


def test_a_commit_in_the_middle_of_speech_ends_the_turn(owner: Owner) -> None:
    (started,) = owner.do(owner.session.speech_started(0))
    told = owner.say("input_audio_buffer.commit")
    assert told[0]["item_id"] == started["item_id"]
    assert owner.do(owner.session.speech_stopped(900)) == []
    judge(owner)


def test_an_empty_commit_leaves_the_open_turn_alone(owner: Owner) -> None:
    owner.do(owner.session.speech_started(0))
    owner.heard_ms = 0
    assert kinds(owner.say("input_audio_buffer.commit")) == ["error"]
    assert kinds(owner.do(owner.session.speech_stopped(900)))[:2] == TURN[1:3]
    judge(owner, ended=False)


def test_a_commit_in_speech_that_resumed_is_a_turn_of_its_own(owner: Owner) -> None:
    first = owner.turn()[0]["item_id"]
    owner.do(owner.session.speech_resumed(1300))
    told = owner.say("input_audio_buffer.commit")
    assert kinds(told) == TURN[2:]
    assert told[0]["item_id"] != first
    judge(owner)


def test_the_input_can_be_cleared(owner: Owner) -> None:
    owner.do(owner.session.speech_started(0))
    assert kinds(owner.say("input_audio_buffer.clear")) == ["input_audio_buffer.cleared"]
    assert owner.commands[-1] == Forget()
    assert owner.do(owner.session.speech_stopped(900)) == []
    judge(owner)


def test_a_turn_is_not_answered_when_the_client_does_that() -> None:
    owner = Owner(
        {"audio": {"input": {"turn_detection": {"type": "server_vad", "create_response": False}}}}
    )
    assert kinds(owner.turn()) == TURN


def test_a_turn_is_not_answered_while_another_is(owner: Owner) -> None:
    owner.detect({"type": "server_vad", "interrupt_response": False})
    owner.turn()
    assert kinds(owner.turn()) == TURN


def test_nobody_who_listens_is_told_once_per_turn() -> None:
    owner = Owner({"audio": TRANSCRIPTION})
    told = owner.turn()
    assert kinds(told) == [*TURN, "conversation.item.input_audio_transcription.failed", *CREATED]
    assert told[5]["error"]["code"] == "no_recogniser"
    owner.do(owner.session.speech_resumed(1300))
    assert kinds(owner.do(owner.session.speech_stopped(2000))) == [TURN[1], *CREATED]
    judge(owner, ended=False)


def test_a_transcript_comes_when_it_was_asked_for() -> None:
    owner = Owner({"audio": TRANSCRIPTION}, recognises=True)
    item_id = owner.turn()[0]["item_id"]
    (told,) = owner.do(owner.session.transcribed(item_id, "hello", 1.5))
    assert told["transcript"] == "hello"
    assert told["usage"] == {"type": "duration", "seconds": 1.5}
    assert owner.item(item_id)["content"][0]["transcript"] == "hello"
    assert owner.do(owner.session.transcribed(item_id, "again", 1.5)) == []
    judge(owner, ended=False)


def test_speech_that_was_not_understood_is_told() -> None:
    owner = Owner({"audio": TRANSCRIPTION}, recognises=True)
    item_id = owner.turn()[0]["item_id"]
    (told,) = owner.do(owner.session.transcribed(item_id, None, 1.5))
    assert told["error"]["code"] == "transcription_failed"
    judge(owner, ended=False)


def test_no_transcript_comes_unasked() -> None:
    owner = Owner(recognises=True)
    item_id = owner.turn()[0]["item_id"]
    assert owner.do(owner.session.transcribed(item_id, "hello", 1.5)) == []


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


def test_a_response_out_of_band_leaves_the_conversation_alone(owner: Owner) -> None:
    owner.turn()
    owner.reply()
    owner.drain()
    question = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "what?"}],
    }
    told = owner.say(
        "response.create",
        response={"conversation": "none", "metadata": {"topic": "a"}, "input": [question]},
    )
    assert told[0]["response"]["conversation_id"] is None
    assert told[0]["response"]["metadata"] == {"topic": "a"}
    assert owner.response.text == "what?"
    start = len(owner.events)
    reply = owner.reply()
    owner.drain()
    assert "conversation.item.added" not in kinds(owner.events[start:])
    missing = error(owner.say("conversation.item.retrieve", item_id=reply.item_id))
    assert missing["code"] == "item_not_found"
    judge(owner)


def test_a_deleted_reply_is_done_for_its_response_only(owner: Owner) -> None:
    owner.turn()
    response = owner.response
    owner.do(owner.session.began(response.response_id))
    owner.say("conversation.item.delete", item_id=response.item_id)
    owner.do(owner.session.audible(response.response_id))
    told = owner.do(owner.session.spoken(response.response_id, 100))
    assert kinds(told) == [*ITEM_DONE[:-1], "response.done"]
    owner.drain()
    judge(owner)


def test_the_next_reply_ends_the_sound_of_the_last(owner: Owner) -> None:
    owner.turn()
    first = owner.reply()
    owner.say("response.create")
    owner.reply()
    kind = "output_audio_buffer.stopped"
    stopped = [event for event in owner.events if event["type"] == kind]
    assert [event["response_id"] for event in stopped] == [first.response_id]
    owner.drain()
    judge(owner)


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
