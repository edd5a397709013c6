import copy
from typing import Any

import pytest

from tests.judges.openai_types import faults

ITEM = {
    "id": "item_1",
    "object": "realtime.item",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_audio", "transcript": "hello"}],
}
ADDED = {
    "type": "conversation.item.added",
    "event_id": "event_1",
    "previous_item_id": None,
    "item": ITEM,
}
DONE = {
    "type": "response.done",
    "event_id": "event_2",
    "response": {
        "id": "resp_1",
        "object": "realtime.response",
        "status": "cancelled",
        "status_details": {"type": "cancelled", "reason": "turn_detected"},
        "output": [ITEM],
        "output_modalities": ["audio"],
        "usage": {"total_tokens": 0, "input_tokens": 0, "output_tokens": 0},
    },
}
SESSION = {
    "type": "session.updated",
    "event_id": "event_3",
    "session": {
        "type": "realtime",
        "object": "realtime.session",
        "id": "sess_1",
        "model": "parrot",
        "output_modalities": ["audio"],
        "audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "low"}}},
        "expires_at": 1,
        "flavour": {"of": "the client's own"},
    },
}
MISSING = object()


def broken(event: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """The event with another value at a dotted path."""
    changed = copy.deepcopy(event)
    *way, last = path.split(".")
    place: Any = changed
    for key in way:
        place = place[int(key)] if key.isdigit() else place[key]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return changed


@pytest.mark.parametrize("event", [ADDED, DONE, SESSION])
def test_a_right_event_has_no_faults(event: dict[str, Any]) -> None:
    assert faults(event) == []


@pytest.mark.parametrize(
    ("event", "path", "value"),
    [
        (ADDED, "type", "conversation.item.nonsense"),
        (ADDED, "type", MISSING),
        (ADDED, "event_id", MISSING),
        (ADDED, "event_id", 5),
        (ADDED, "item", MISSING),
        (ADDED, "previous_item", "item_0"),
        (ADDED, "item.role", "robot"),
        (ADDED, "item.role", MISSING),
        (ADDED, "item.object", "realtime.thing"),
        (ADDED, "item.id", MISSING),
        (ADDED, "item.status", MISSING),
        (ADDED, "item.status", "done"),
        (ADDED, "item.flavour", "new"),
        (ADDED, "item.content.0.type", "audio"),
        (ADDED, "item.content.0.transcript", 5),
        (ADDED, "item.content.0.words", "hello"),
        (DONE, "response.status", "canceled"),
        (DONE, "response.status_details", None),
        (DONE, "response.status_details.reason", "bored"),
        (DONE, "response.output.0.role", "robot"),
        (DONE, "response.output_modalities", ["voice"]),
        (DONE, "response.usage", None),
        (DONE, "response.usage.total_tokens", "0"),
        (DONE, "response.id", MISSING),
        (SESSION, "session.type", "realtime-beta"),
        (SESSION, "session.type", MISSING),
        (SESSION, "session.audio", MISSING),
        (SESSION, "session.audio.input.turn_detection.type", "client_vad"),
        (SESSION, "session.audio.input.turn_detection.eagerness", "eager"),
        (SESSION, "session.audio.inputs", {}),
    ],
)
def test_a_broken_event_has(event: dict[str, Any], path: str, value: object) -> None:
    assert faults(broken(event, path, value))


def test_a_fault_names_event_and_field() -> None:
    (fault,) = faults(broken(ADDED, "event_id", 5))
    assert fault.startswith("conversation.item.added: event_id: ")
