from typing import Any

import pytest

from transceiver.session import items
from transceiver.session.conversation import Conversation
from transceiver.session.fields import Refusal
from transceiver.session.request import Request
from transceiver.session.settings import Settings

SETTINGS = Settings.initial("sess_1", "parrot", 0, detects=True)
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "42"}


def said(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content}


@pytest.fixture
def conversation() -> Conversation:
    return Conversation("conv_1")


@pytest.fixture
def spoken(conversation: Conversation) -> Conversation:
    conversation.add(items.spoken_turn("item_0"))
    return conversation


def read(asked: object, conversation: Conversation, settings: Settings = SETTINGS) -> Request:
    return Request.read(asked, settings, conversation, lambda: "item_new")


def test_nothing_special_is_as_the_session_says(spoken: Conversation) -> None:
    request = read(None, spoken)
    assert (request.modality, request.max_output_tokens) == ("audio", "inf")
    assert request.audio == {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "parrot"}
    assert request.in_conversation
    assert (request.turn_item_id, request.text, request.metadata) == ("item_0", None, None)
    written = read({}, spoken, SETTINGS.updated({"output_modalities": ["text"]}))
    assert written.modality == "text"


def test_a_response_can_differ_from_the_session(conversation: Conversation) -> None:
    request = read(
        {
            "output_modalities": ["text"],
            "max_output_tokens": 5,
            "conversation": "none",
            "metadata": {"a": "b"},
            "audio": {"output": {"voice": {"id": "voice_1"}}},
            "instructions": "be brief",
            "tools": [],
        },
        conversation,
    )
    assert (request.modality, request.max_output_tokens) == ("text", 5)
    assert not request.in_conversation
    assert request.metadata == {"a": "b"}
    assert request.audio["voice"] == "voice_1"


def test_it_answers_what_came_last(conversation: Conversation) -> None:
    conversation.add(items.read(said("hello"), "item_1"))
    conversation.add(items.reply("item_2", [], "completed"))
    assert read(None, conversation).text == "hello"
    conversation.add(items.spoken_turn("item_3"))
    assert read(None, conversation).turn_item_id == "item_3"
    assert read(None, conversation).text is None
    conversation.add(items.read(OUTPUT, "item_4"))
    assert read(None, conversation).text == "42"


def test_what_is_written_is_answered_in_writing(spoken: Conversation) -> None:
    spoken.add(items.read(said("hello"), "item_1"))
    assert read(None, spoken).modality == "text"
    assert read({"output_modalities": ["audio"]}, spoken).modality == "text"
    turn = Request.read(None, SETTINGS, spoken, lambda: "", "item_0")
    assert (turn.modality, turn.turn_item_id, turn.text) == ("audio", "item_0", None)


def test_it_can_be_given_what_to_answer(conversation: Conversation) -> None:
    conversation.add(items.spoken_turn("item_1"))
    assert read({"input": [said("one"), said("two")]}, conversation).text == "two"
    reference = {"type": "item_reference", "id": "item_1"}
    assert read({"input": [said("one"), reference]}, conversation).turn_item_id == "item_1"
    nothing = read({"input": []}, conversation)
    assert (nothing.text, nothing.turn_item_id) == (None, None)


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ([], "response"),
        ({"output_modalities": ["smell"]}, "response.output_modalities"),
        ({"max_output_tokens": -1}, "response.max_output_tokens"),
        ({"conversation": "conv_1"}, "response.conversation"),
        ({"conversation": []}, "response.conversation"),
        ({"metadata": {"a": 1}}, "response.metadata"),
        ({"metadata": {"a" * 65: "b"}}, "response.metadata"),
        ({"metadata": {str(at): "b" for at in range(17)}}, "response.metadata"),
        ({"input": {}}, "response.input"),
        ({"input": [said("x")] * 101}, "response.input"),
        ({"input": ["x"]}, "response.input[0]"),
        ({"input": [said("x"), {"type": "message"}]}, "response.input[1].role"),
        ({"input": [{"type": "item_reference", "id": "none"}]}, "response.input[0].id"),
        ({"input": [{"type": "item_reference"}]}, "response.input[0].id"),
        ({"audio": 5}, "response.audio"),
        ({"audio": {"output": 5}}, "response.audio.output"),
        ({"audio": {"output": {"format": "pcm16"}}}, "response.audio.output.format"),
        ({"audio": {"output": {"voice": {}}}}, "response.audio.output.voice"),
    ],
)
def test_a_wrong_field_is_named(conversation: Conversation, asked: object, param: str) -> None:
    with pytest.raises(Refusal) as refused:
        read(asked, conversation)
    assert refused.value.param == param
