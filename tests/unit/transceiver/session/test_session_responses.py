"""One response at a time: made, cancelled, failed, out of band."""

from typing import Any

import pytest

from tests.unit.transceiver.session.owner import Owner, abandoned, error, judge, kinds
from transceiver.session.commands import Clear, Cut

ITEM_DONE = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
]


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


def test_the_end_of_its_sound_is_the_end_of_a_response(owner: Owner) -> None:
    owner.turn()
    owner.do(owner.session.audible(owner.response.response_id))
    told = owner.drain()
    assert kinds(told)[-2:] == ["response.done", "output_audio_buffer.stopped"]
    judge(owner)


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
