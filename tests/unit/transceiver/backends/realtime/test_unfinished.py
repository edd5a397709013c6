"""What a lost server left open is ended: in order, once, and with what was written so far."""

from collections.abc import Sequence

import pytest

from tests.judges import openai_types
from transceiver.backends.realtime.unfinished import MAX_OPEN, Unfinished
from transceiver.events import Event

ITEM = {"id": "item_1", "object": "realtime.item", "type": "message", "role": "assistant"}
SAID: list[Event] = [
    {
        "type": "response.output_item.added",
        "response_id": "resp_1",
        "output_index": 0,
        "item": {**ITEM, "status": "in_progress", "content": []},
    },
    {
        "type": "conversation.item.added",
        "previous_item_id": "item_0",
        "item": {**ITEM, "status": "in_progress", "content": []},
    },
    {
        "type": "response.content_part.added",
        "response_id": "resp_1",
        "item_id": "item_1",
        "output_index": 0,
        "content_index": 0,
        "part": {"type": "audio", "transcript": ""},
    },
    *(
        {
            "type": "response.output_audio_transcript.delta",
            "response_id": "resp_1",
            "item_id": "item_1",
            "output_index": 0,
            "content_index": 0,
            "delta": delta,
        }
        for delta in ("It was ", "a dark")
    ),
]
PLACE = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}
ENDS = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
]


def ended(said: Sequence[Event]) -> list[Event]:
    unfinished = Unfinished()
    for event in said:
        unfinished.told(event)
    ends = unfinished.end()
    assert unfinished.end() == []  # once
    return ends


def test_all_that_was_begun_is_ended_with_what_was_written() -> None:
    ends = ended(SAID)
    assert [end["type"] for end in ends] == ENDS
    transcript, part, output, item = ends[1:]
    assert transcript["transcript"] == part["part"]["transcript"] == "It was a dark"
    assert output["item"] == item["item"] == {**ITEM, "status": "incomplete", "content": []}
    assert (output["response_id"], item["previous_item_id"]) == ("resp_1", "item_0")
    for number, end in enumerate(ends):
        assert openai_types.faults({**end, "event_id": f"event_{number}"}) == []


@pytest.mark.parametrize("count", range(1, len(ENDS)))
def test_what_the_server_has_ended_is_not_ended_again(count: int) -> None:
    told: list[Event] = [
        {"type": "response.output_audio.done", **PLACE},
        {"type": "response.output_audio_transcript.done", **PLACE, "transcript": "It was a dark"},
        {"type": "response.content_part.done", **PLACE, "part": {"type": "audio"}},
        {"type": "response.output_item.done", "response_id": "resp_1", "item": ITEM},
        {"type": "conversation.item.done", "item": ITEM},
    ]
    assert [end["type"] for end in ended([*SAID, *told[:count]])] == ENDS[count:]


def test_after_its_last_event_nothing_is_open() -> None:
    assert ended([*SAID, {"type": "conversation.item.done", "item": ITEM}]) == []


def test_an_item_beside_the_conversation_ends_with_its_output() -> None:
    done = {"type": "response.output_item.done", "response_id": "resp_1", "item": ITEM}
    assert ended([SAID[0], SAID[2], done]) == []
    assert [end["type"] for end in ended([SAID[0], SAID[2]])] == ENDS[:-1]


def test_half_a_call_of_a_tool_is_not_run() -> None:
    call = {"id": "item_1", "type": "function_call", "name": "look", "call_id": "call_1"}
    added = {**SAID[0], "item": call}
    delta = {"type": "response.function_call_arguments.delta", **PLACE, "delta": '{"pl'}
    (end,) = ended([added, delta])
    assert end["type"] == "response.output_item.done"
    assert end["item"]["status"] == "incomplete"


def test_what_makes_no_sense_changes_nothing() -> None:
    odd: list[Event] = [
        {"type": "response.output_item.added", "item": "no object"},
        {"type": "response.content_part.added", "item_id": ["a", "list"]},
        {"type": "response.content_part.added", "item_id": "item_9", "part": 7},
    ]
    assert ended(odd) == []
    many = [{**SAID[0], "item": {"id": f"item_{number}"}} for number in range(2 * MAX_OPEN)]
    assert len(ended(many)) == MAX_OPEN
