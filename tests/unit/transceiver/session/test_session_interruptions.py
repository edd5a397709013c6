"""Barge-in, and what clients clear and truncate themselves."""

from typing import Any

from tests.unit.transceiver.session.owner import Owner, abandoned, error, judge, kinds
from transceiver.session.commands import Clear, Cut, Truncate

TURN = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
]
CREATED = ["response.created", "rate_limits.updated"]
ITEM_DONE = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
]


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


def test_a_text_reply_that_is_made_is_not_truncated(owner: Owner) -> None:
    owner.say("response.create", response={"output_modalities": ["text"]})
    response = owner.response
    owner.do(owner.session.began(response.response_id))
    fields: dict[str, Any] = {"item_id": response.item_id, "audio_end_ms": 0}
    told = error(owner.say("conversation.item.truncate", **fields))
    assert told["code"] == "unsupported_content_type"
    assert abandoned(owner) == []
