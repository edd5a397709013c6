from typing import Any

import pytest

from transceiver.session import items
from transceiver.session.fields import Refusal

MESSAGE: dict[str, Any] = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "hello"}],
}


def part(**fields: Any) -> dict[str, Any]:
    return MESSAGE | {"content": [fields]}


@pytest.mark.parametrize(
    "asked",
    [
        MESSAGE,
        MESSAGE | {"role": "system"},
        MESSAGE | {"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
        {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": ""},
    ],
)
def test_an_item_is_shown_as_it_came(asked: dict[str, Any]) -> None:
    item = items.read(asked, "item_1")
    own = {"id": "item_1", "object": "realtime.item", "status": "completed"}
    assert item == asked | own


def test_an_item_may_bring_its_id() -> None:
    assert items.read(MESSAGE | {"id": "mine"}, "item_1")["id"] == "mine"
    assert items.read(MESSAGE | {"id": None}, "item_1")["id"] == "item_1"


def test_the_sound_of_an_item_is_not_kept() -> None:
    item = items.read(part(type="input_audio", audio="AAAA", transcript="hi"), "item_1")
    assert item["content"] == [{"type": "input_audio", "transcript": "hi"}]


def test_a_spoken_part_has_a_transcript_if_only_null() -> None:
    item = items.read(part(type="input_audio", audio="AAAA"), "item_1")
    assert item["content"] == [{"type": "input_audio", "transcript": None}]


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        (None, "item"),
        ({}, "item.type"),
        ({"type": ["message"]}, "item.type"),
        ({"type": "mcp_call"}, "item.type"),
        ({"type": "message"}, "item.role"),
        (MESSAGE | {"role": ["user"]}, "item.role"),
        (MESSAGE | {"id": 5}, "item.id"),
        (MESSAGE | {"id": ""}, "item.id"),
        (MESSAGE | {"id": "x" * 129}, "item.id"),
        (MESSAGE | {"content": "hello"}, "item.content"),
        (MESSAGE | {"content": []}, "item.content"),
        (MESSAGE | {"content": ["hello"]}, "item.content[0]"),
        (part(type="output_text", text="hi"), "item.content[0].type"),
        (part(type=[]), "item.content[0].type"),
        (part(type="input_text"), "item.content[0].text"),
        (part(type="input_image"), "item.content[0].image_url"),
        (part(type="input_audio", transcript=5), "item.content[0].transcript"),
        ({"type": "function_call", "name": "f"}, "item.arguments"),
        ({"type": "function_call_output", "output": "1"}, "item.call_id"),
    ],
)
def test_a_wrong_field_is_named(asked: object, param: str) -> None:
    with pytest.raises(Refusal) as refused:
        items.read(asked, "item_1")
    assert refused.value.param == param


def test_an_item_has_a_size() -> None:
    with pytest.raises(Refusal) as refused:
        items.read(part(type="input_text", text="x" * items.MAX_ITEM), "item_1")
    assert refused.value.code == "item_too_large"


@pytest.mark.parametrize(
    ("heard_ms", "received_ms", "heard"),
    [
        (0, 1000, ""),
        (0, 0, ""),
        (1000, 1000, "one two  three"),
        (2000, 1000, "one two  three"),
        (999, 1000, "one two"),
        (500, 1000, "one two"),
        (499, 1000, "one"),
        (100, 1000, ""),
    ],
)
def test_the_heard_part_is_of_whole_words(heard_ms: int, received_ms: int, heard: str) -> None:
    assert items.heard_part("one two  three", heard_ms, received_ms) == heard


def test_truncation_leaves_the_old_item_alone() -> None:
    item = items.reply("item_1", [items.reply_content("audio", "one two")], "completed")
    assert items.truncated(item, 0, 500, 1000)["content"][0]["transcript"] == "one"
    assert item["content"][0]["transcript"] == "one two"


def test_only_sound_of_the_assistant_is_a_spoken_reply() -> None:
    spoken = items.reply("item_1", [items.reply_content("audio", "one")], "completed")
    assert items.is_spoken_reply(spoken, 0)
    assert not items.is_spoken_reply(spoken, 1)
    assert not items.is_spoken_reply(items.spoken_turn("item_2"), 0)
    written = items.reply("item_3", [items.reply_content("text", "one")], "completed")
    assert not items.is_spoken_reply(written, 0)
    assert not items.is_spoken_reply(items.reply("item_4", [], "in_progress"), 0)
    output = {"type": "function_call_output", "call_id": "c", "output": ""}
    assert not items.is_spoken_reply(items.read(output, "item_5"), 0)


def test_what_is_written_can_be_answered() -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "42"}
    assert items.written(items.read(output, "item_1")) == "42"
    assert items.written(items.read(MESSAGE, "item_2")) == "hello"
    assert items.written(items.spoken_turn("item_3")) is None
