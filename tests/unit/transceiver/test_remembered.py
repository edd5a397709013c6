from typing import Any

import pytest

from transceiver.remembered import NO_TRANSCRIPT, Heard, as_text, told_of

CALL = {"id": "c", "type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
OUTPUT = {"id": "o", "type": "function_call_output", "call_id": "1", "output": "x"}


def message(role: str, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "m", "type": "message", "role": role, "content": list(parts), **fields}


def spoken(words: str | None, **fields: Any) -> dict[str, Any]:
    return message("assistant", {"type": "output_audio", "transcript": words}, **fields)


def words(item: dict[str, Any] | None) -> list[str] | None:
    return None if item is None else [part["text"] for part in item["content"]]


@pytest.mark.parametrize("item", [CALL, OUTPUT])
def test_calls_and_outputs_are_kept_to_the_letter(item: dict[str, Any]) -> None:
    assert as_text({**item, "object": "realtime.item", "status": "completed"}) == item
    assert as_text({**item, "status": "in_progress"}) is None


@pytest.mark.parametrize(
    ("role", "kind"),
    [("user", "input_text"), ("system", "input_text"), ("assistant", "output_text")],
)
def test_messages_become_text_of_their_role(role: str, kind: str) -> None:
    item = message(role, {"type": "x", "text": "a"}, {"type": "y", "transcript": "b"})
    assert as_text(item) == message(role, {"type": kind, "text": "a"}, {"type": kind, "text": "b"})


@pytest.mark.parametrize("item", [spoken(None), spoken(""), message("user"), message("user", {})])
def test_what_has_no_words_has_its_place(item: dict[str, Any]) -> None:
    assert words(as_text(item)) == [NO_TRANSCRIPT]


def test_what_is_being_made_is_kept_as_far_as_there_are_words() -> None:
    assert as_text(spoken("", status="in_progress")) is None
    assert words(as_text(spoken("one", status="in_progress"))) == ["one"]


@pytest.mark.parametrize(
    ("heard_ms", "kept"), [(0, None), (100, None), (600, ["one two"]), (1000, ["one two three"])]
)
def test_of_what_plays_the_words_that_were_heard(heard_ms: int, kept: list[str] | None) -> None:
    heard = Heard(heard_ms, 1000)
    assert words(as_text(spoken("one two three"), heard)) == kept


def test_of_what_plays_without_words_its_place_once_it_was_heard() -> None:
    assert as_text(spoken(None), Heard(0, 1000)) is None
    assert words(as_text(spoken(None), Heard(20, 1000))) == [NO_TRANSCRIPT]


def test_other_kinds_are_not_kept() -> None:
    assert as_text({"id": "x", "type": "mcp_call"}) is None


def test_items_are_told_in_order() -> None:
    first, second, third, fourth = told_of([CALL, OUTPUT])
    assert [first["type"], second["type"]] == [
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert first["item"] == second["item"] == {**CALL, "object": "realtime.item", **DONE}
    assert [e["previous_item_id"] for e in (first, second, third, fourth)] == [None, None, "c", "c"]


DONE = {"status": "completed"}
