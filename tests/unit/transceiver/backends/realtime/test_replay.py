from typing import Any

import pytest

from transceiver.backends.realtime.replay import MAX_ITEMS, MAX_TEXT, Memory
from transceiver.events import Event


def message(item_id: str, role: str, *parts: tuple[str, str, str], **fields: Any) -> Event:
    """Each part: its type, the field with its text, the text."""
    content = [{"type": kind, name: text} for kind, name, text in parts]
    return {"id": item_id, "type": "message", "role": role, "content": content, **fields}


def told(memory: Memory, kind: str, **fields: Any) -> None:
    memory.told({"type": kind, **fields})


def add(memory: Memory, item: Event, after: str | None = None) -> None:
    told(memory, "conversation.item.added", item=item, previous_item_id=after)


def texts(memory: Memory) -> list[list[str]]:
    return [[part["text"] for part in item["content"]] for item in memory.items()]


def ids(memory: Memory) -> list[str]:
    return [item["id"] for item in memory.items()]


def test_all_kinds_of_items_as_text() -> None:
    memory = Memory()
    add(memory, message("s", "system", ("input_text", "text", "be brief")))
    add(
        memory,
        message("u", "user", ("input_text", "text", "hi"), ("input_audio", "transcript", "ho")),
    )
    call = {"id": "c", "type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    add(memory, {**call, "status": "completed", "object": "realtime.item"})
    add(memory, {"id": "o", "type": "function_call_output", "call_id": "1", "output": ""})
    add(memory, message("a", "assistant", ("output_audio", "transcript", "well")))
    add(memory, {"id": "m", "type": "mcp_call", "name": "x"})
    assert memory.items() == [
        message("s", "system", ("input_text", "text", "be brief")),
        message("u", "user", ("input_text", "text", "hi"), ("input_text", "text", "ho")),
        call,
        {"id": "o", "type": "function_call_output", "call_id": "1", "output": ""},
        message("a", "assistant", ("output_text", "text", "well")),
    ]


def test_speech_is_known_by_its_transcript_and_left_out_without_one() -> None:
    memory = Memory()
    spoken = {"id": "u", "type": "message", "role": "user"}
    spoken["content"] = [{"type": "input_audio", "transcript": None}]  # type: ignore[assignment]
    add(memory, spoken)
    assert memory.items() == []
    kind = "conversation.item.input_audio_transcription.completed"
    told(memory, kind, item_id="u", content_index=0, transcript="hello")
    assert texts(memory) == [["hello"]]


def test_a_reply_is_what_was_heard_of_it_whenever_its_words_come() -> None:
    memory = Memory()
    add(memory, message("a", "assistant", status="in_progress"))
    delta = "response.output_audio_transcript.delta"
    told(memory, delta, item_id="a", content_index=0, delta="one two ")
    told(memory, delta, item_id="a", content_index=0, delta="three four")
    assert texts(memory) == [["one two three four"]]
    memory.sound("a", 48 * 1000)
    memory.heard("a", 500)
    assert texts(memory) == [["one two"]]
    done = message("a", "assistant", ("output_audio", "transcript", "one two three four five six"))
    told(memory, "response.output_item.done", item=done)
    assert texts(memory) == [["one two three"]]
    memory.heard("a", 0)
    assert memory.items() == []


def test_a_truncation_by_the_client_cuts_too() -> None:
    memory = Memory()
    add(memory, message("a", "assistant", ("output_audio", "transcript", "one two")))
    memory.sound("a", 48 * 1000)
    told(memory, "conversation.item.truncated", item_id="a", audio_end_ms=600)
    assert texts(memory) == [["one"]]


def test_the_conversations_order_holds() -> None:
    memory = Memory()
    for name in "abd":
        add(memory, message(name, "user", ("input_text", "text", name)))
    add(memory, message("c", "user", ("input_text", "text", "c")), after="b")
    add(memory, message("e", "user", ("input_text", "text", "e")), after="no such")
    assert ids(memory) == ["a", "b", "c", "d", "e"]
    told(memory, "conversation.item.deleted", item_id="b")
    assert ids(memory) == ["a", "c", "d", "e"]


def test_a_call_whose_arguments_are_not_there_yet_is_left_out() -> None:
    memory = Memory()
    call = {"id": "c", "type": "function_call", "call_id": "1", "name": "f", "arguments": ""}
    add(memory, {**call, "status": "in_progress"})
    assert memory.items() == []
    told(memory, "conversation.item.done", item={**call, "arguments": "{}", "status": "completed"})
    assert memory.items() == [{**call, "arguments": "{}"}]


def test_the_oldest_are_forgotten() -> None:
    memory = Memory()
    for n in range(MAX_ITEMS + 3):
        add(memory, message(f"i{n}", "user", ("input_text", "text", "x")))
    assert ids(memory) == [f"i{n}" for n in range(3, MAX_ITEMS + 3)]
    add(memory, message("long", "user", ("input_text", "text", "x" * (MAX_TEXT - 100))))
    assert ids(memory)[-1] == "long"
    assert len(memory.items()) < 30


def test_items_that_nobody_confirmed_are_asked_again() -> None:
    memory = Memory()
    output = {"type": "function_call_output", "call_id": "1", "output": "x"}
    asked: list[Event] = [
        {"type": "conversation.item.create", "item": output, "event_id": "1"},
        {"type": "conversation.item.create", "item": {"id": "mine", "type": "message"}},
        {"type": "conversation.item.create", "item": {"type": "x"}, "event_id": "bad"},
        {"type": "conversation.item.create", "item": None},
    ]
    for event in asked:
        memory.asked(event)
    add(memory, message("other", "user"))
    memory.asked(asked[0])  # it was sent again
    assert memory.unconfirmed() == asked
    told(memory, "error", error={"event_id": "bad"})
    add(memory, message("mine", "user"))
    add(memory, {**output, "id": "o", "call_id": "other"})
    assert memory.unconfirmed() == [asked[0], asked[3]]
    add(memory, {**output, "id": "o1"})
    assert memory.unconfirmed() == [asked[3]]


def test_speech_does_not_confirm_what_was_written() -> None:
    memory = Memory()
    written = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}
    event: Event = {"type": "conversation.item.create", "item": written}
    memory.asked(event)
    add(memory, message("u", "user", ("input_audio", "transcript", "b")))
    assert memory.unconfirmed() == [event]
    add(memory, message("v", "user", ("input_text", "text", "a")))
    assert memory.unconfirmed() == []


def test_of_what_nobody_confirmed_only_so_much_is_kept() -> None:
    memory = Memory()
    for n in range(30):
        content = [{"type": "input_text", "text": f"{n}" + "x" * (MAX_TEXT // 10)}]
        memory.asked({"type": "conversation.item.create", "item": {"content": content}})
    assert len(memory.unconfirmed()) == 9


@pytest.mark.parametrize("content", [5, True, {}, "words", [5, {"text": 5}]])
def test_odd_content_is_none(content: object) -> None:
    memory = Memory()
    add(memory, {"id": "a", "type": "message", "role": "user", "content": content})
    assert memory.items() == []
