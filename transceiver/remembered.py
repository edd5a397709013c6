"""What carries a conversation on elsewhere: its settings, and its items as text. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transceiver.events import Event
from transceiver.session.items import Item, heard_part

NO_TRANSCRIPT = "[no transcript]"  # stands for an item of which nothing is written

_VERBATIM = {
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
}
_READS = {"assistant": "output_text"}  # what a role's text is called; "input_text" otherwise


@dataclass(frozen=True, slots=True)
class Remembered:
    """`session` as `session.update` can set it again. `moves`: a reply plays, so what was heard of
    it grows, and with it what there is to remember."""

    session: Mapping[str, Any]
    items: Sequence[Item] = ()
    moves: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """How much of an item's sound the client has heard by now."""

    heard_ms: int
    received_ms: int


def as_text(item: Item, heard: Heard | None = None) -> Item | None:
    """The item as `conversation.item.create` takes it anywhere; None if there is nothing of it:
    it is being made, or its sound waits. `heard`: its sound is not heard to the end yet."""
    kind = item.get("type")
    if fields := _VERBATIM.get(str(kind)):
        if item.get("status") == "in_progress":
            return None
        return {"id": item["id"], "type": kind} | {key: item.get(key) for key in fields}
    if kind != "message":
        return None
    texts = [text for part in item.get("content") or () if (text := _text(part))]
    if heard is not None:
        whole = bool(texts)
        texts = [heard_part(text, heard.heard_ms, heard.received_ms) for text in texts]
        if not heard.heard_ms or (whole and not any(texts)):
            return None
    elif item.get("status") == "in_progress" and not texts:
        return None
    part = _READS.get(str(item.get("role")), "input_text")
    content = [{"type": part, "text": text} for text in texts if text]
    content = content or [{"type": part, "text": NO_TRANSCRIPT}]
    return {"id": item["id"], "type": kind, "role": item.get("role"), "content": content}


def told_of(items: Sequence[Item]) -> list[Event]:
    """The events that tell a client of these items at the front of its conversation."""
    events: list[Event] = []
    before = None
    for item in items:
        shown = {"object": "realtime.item", "status": "completed"} | item
        told = {"previous_item_id": before, "item": shown}
        events.append({"type": "conversation.item.added", **told})
        events.append({"type": "conversation.item.done", **told})
        before = item["id"]
    return events


def _text(part: Any) -> str:
    text = (part.get("text") or part.get("transcript")) if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""
