"""Right conversations pass; with any two neighbours swapped, or one event left out, they do not."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.judges.order import faults

Event = dict[str, Any]

WHY = {"status_details": {"reason": "turn_detected"}}  # read if the status is cancelled


def numbered(events: list[Event]) -> list[Event]:
    return [{"event_id": f"event_{at}", **event} for at, event in enumerate(events)]


def user(item_id: str) -> Event:
    return {"id": item_id, "type": "message", "role": "user", "status": "completed"}


def created() -> list[Event]:
    return [{"type": "session.created"}]


def turn(item_id: str, before: str | None) -> list[Event]:
    place = {"previous_item_id": before, "item": user(item_id)}
    buffer = "input_audio_buffer."
    return [
        {"type": buffer + "speech_started", "item_id": item_id},
        {"type": buffer + "speech_stopped", "item_id": item_id},
        {"type": buffer + "committed", "item_id": item_id, "previous_item_id": before},
        {"type": "conversation.item.added", **place},
        {"type": "conversation.item.done", **place},
        {"type": "conversation.item.input_audio_transcription.completed", "item_id": item_id},
    ]


def began(name: str, before: str, kind: str = "audio") -> list[Event]:
    """The response of this name, up to its content."""
    item = {"id": f"item_{name}", "type": "message", "role": "assistant", "status": "in_progress"}
    response = {"id": name, "status": "in_progress", "conversation_id": "conv_1"}
    place = {"response_id": name, "item_id": f"item_{name}"}
    return [
        {"type": "response.created", "response": response},
        {"type": "rate_limits.updated"},
        {"type": "response.output_item.added", "response_id": name, "item": item},
        {"type": "conversation.item.added", "previous_item_id": before, "item": item},
        {"type": "response.content_part.added", **place, "part": {"type": kind}},
    ]


def said(name: str, before: str, kind: str = "audio", status: str = "completed") -> list[Event]:
    """Its end."""
    item = {"id": f"item_{name}", "type": "message", "role": "assistant", "status": status}
    place = {"response_id": name, "item_id": f"item_{name}"}
    done = ["output_audio", "output_audio_transcript"] if kind == "audio" else ["output_text"]
    response = {"id": name, "status": status, "conversation_id": "conv_1", **WHY}
    return [
        *({"type": f"response.{each}.done", **place} for each in done),
        {"type": "response.content_part.done", **place, "part": {"type": kind}},
        {"type": "response.output_item.done", "response_id": name, "item": item},
        {"type": "conversation.item.done", "previous_item_id": before, "item": item},
        {"type": "response.done", "response": response},
    ]


def sound(name: str, what: str) -> list[Event]:
    return [{"type": f"output_audio_buffer.{what}", "response_id": name}]


def delta(name: str, kind: str = "output_audio_transcript") -> list[Event]:
    place = {"response_id": name, "item_id": f"item_{name}"}
    return [{"type": f"response.{kind}.delta", **place, "delta": "word"}]


def truncated(name: str) -> list[Event]:
    return [{"type": "conversation.item.truncated", "item_id": f"item_{name}", "audio_end_ms": 1}]


def spoken() -> list[Event]:
    """A turn and its reply."""
    reply = [*began("a", "turn"), *sound("a", "started"), *delta("a"), *said("a", "turn")]
    return numbered([*created(), *turn("turn", None), *reply, *sound("a", "stopped")])


def cut_off() -> list[Event]:
    """Speech into a reply that is still made."""
    reply = [*began("a", "turn"), *sound("a", "started"), *delta("a")]
    again = turn("next", "item_a")
    end = [*sound("a", "cleared"), *said("a", "turn", status="cancelled"), *truncated("a")]
    return numbered([*created(), *turn("turn", None), *reply, again[0], *end, *again[1:]])


def written() -> list[Event]:
    place = {"previous_item_id": None, "item": user("asked")}
    asked = [{"type": f"conversation.item.{what}", **place} for what in ("added", "done")]
    reply = [*began("a", "asked", "text"), *delta("a", "output_text"), *said("a", "asked", "text")]
    return numbered([*created(), *asked, *reply])


def resumed() -> list[Event]:
    """The answer comes too early: cancelled before it was heard."""
    cancelled = {"id": "a", "status": "cancelled", "conversation_id": "conv_1", **WHY}
    early = began("a", "turn")[:2]
    again = turn("turn", None)
    late = [*began("b", "turn"), *sound("b", "started"), *said("b", "turn")]
    return numbered(
        [
            *created(),
            *again[:-1],
            *early,
            again[0],
            {"type": "response.done", "response": cancelled},
            again[1],
            *late,
            *sound("b", "stopped"),
        ]
    )


CONVERSATIONS = [spoken, cut_off, written, resumed]
# Neighbours whose order is nobody's business.
FREE = [
    {"response.output_audio_transcript.delta", "input_audio_buffer.speech_started"},
    {"conversation.item.truncated", "input_audio_buffer.speech_stopped"},
]
# What a conversation may do without: a turn that the client commits does not stop.
OPTIONAL = {
    "input_audio_buffer.speech_stopped",
    "conversation.item.input_audio_transcription.completed",
    "conversation.item.truncated",
    "response.output_audio_transcript.delta",
    "response.output_text.delta",
}


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_the_normal_order_has_no_faults(conversation: Callable[[], list[Event]]) -> None:
    assert faults(conversation()) == []


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_swapped_neighbours_are_a_fault(conversation: Callable[[], list[Event]]) -> None:
    events = conversation()
    for at in range(len(events) - 1):
        pair = {events[at]["type"], events[at + 1]["type"]}
        swapped = [*events[:at], events[at + 1], events[at], *events[at + 2 :]]
        assert bool(faults(swapped)) is (pair not in FREE), pair


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_a_missing_event_is_a_fault(conversation: Callable[[], list[Event]]) -> None:
    events = conversation()
    for at, event in enumerate(events):
        left = [*events[:at], *events[at + 1 :]]
        assert bool(faults(left)) is (event["type"] not in OPTIONAL), (at, event["type"])


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_a_repeated_event_is_a_fault(conversation: Callable[[], list[Event]]) -> None:
    events = conversation()
    for at, event in enumerate(events):
        again = [*events[: at + 1], event | {"event_id": "again"}, *events[at + 1 :]]
        repeatable = event["type"] in OPTIONAL - {"input_audio_buffer.speech_stopped"}
        assert bool(faults(again)) is not repeatable, (at, event["type"])


def test_a_conversation_that_goes_on_may_be_open() -> None:
    events = spoken()
    open_ = next(at for at, each in enumerate(events) if each["type"] == "response.done")
    assert faults(events[:open_])
    assert faults(events[:open_], ended=False) == []


def test_a_model_of_others_may_write_before_it_speaks() -> None:
    events = numbered(
        [
            *created(),
            *turn("turn", None),
            *began("a", "turn"),
            *delta("a"),
            *sound("a", "started"),
            *said("a", "turn"),
            *sound("a", "stopped"),
        ]
    )
    assert len(faults(events)) == 1
    assert faults(events, voice_first=False) == []


def added(item_id: str, before: str | None = None) -> list[Event]:
    """The client brings it."""
    place = {"previous_item_id": before, "item": user(item_id)}
    return [{"type": f"conversation.item.{what}", **place} for what in ("added", "done")]


def committed(item_id: str) -> list[Event]:
    return [{"type": "input_audio_buffer.committed", "item_id": item_id}]


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        (turn("a", None)[:2], "turn a was not committed"),
        ([*turn("a", None)[:2], *added("a")], "the turn was not committed"),
        ([*turn("a", None)[:1], *committed("b")], "turn a goes on"),
        ([*added("a"), *committed("a")], "item a was added before"),
        ([*added("a"), *added("a")], "item a was added before"),
        (added("a", "none"), "there is no item none"),
        ([{"type": "conversation.item.deleted", "item_id": "a"}], "there is no such item"),
        ([*added("b"), *added("a", "b"), *began("r", "b")], "comes after a, not b"),
        ([*added("a"), *began("r", "a")[:2], *delta("r")], "wants response.output_item.added"),
        ([*added("a"), *began("r", "a"), *said("q", "a")[-1:]], "q is not active"),
        (
            [*added("a"), *began("r", "a")[:2], *said("r", "a")[-1:], *began("r", "a")[:1]],
            "the id came before",
        ),
        (
            [
                *added("a"),
                *began("r", "a"),
                *sound("r", "started"),
                *said("r", "a", status="cancelled"),
            ],
            "it is heard: nothing was cleared",
        ),
        (
            [
                *added("a"),
                *began("r", "a"),
                *sound("r", "started"),
                *said("r", "a"),
                *sound("r", "stopped"),
                *sound("r", "started"),
            ],
            "it was heard before",
        ),
        (sound("r", "started"), "there is no such response"),
        (sound("r", "stopped"), "r is not heard"),
        (sound("r", "cleared"), "r is not heard"),
        (delta("r"), "r is not active"),
        ([{"type": "rate_limits.updated"}], "no response was created"),
    ],
)
def test_a_fault_says_what_is_wrong(events: list[Event], fault: str) -> None:
    found = faults(numbered([*created(), *events]))
    assert any(fault in each for each in found), found


@pytest.mark.parametrize("what", ["committed", "added"])
def test_an_item_follows_the_last_one(what: str) -> None:
    events = spoken()
    for event in events:
        if event["type"].endswith(what) and "previous_item_id" in event:
            event["previous_item_id"] = "item_none"
    assert faults(events)


def test_an_event_id_comes_once() -> None:
    events = spoken()
    events[-1]["event_id"] = events[-2]["event_id"]
    assert len(faults(events)) == 1
