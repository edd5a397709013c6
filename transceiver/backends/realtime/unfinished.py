"""What a server that is gone has begun and not ended: the events that end it. Pure.

Clients keep an item open until its `.done` events come. What was written of it stays; a call of a
tool gets no `response.function_call_arguments.done`, as that would have it run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from transceiver.events import Event

MAX_OPEN = 100  # items; a reply has one or two

_TEXT = {  # of deltas: the event that ends them, and its field
    "response.output_audio_transcript.delta": (
        "response.output_audio_transcript.done",
        "transcript",
    ),
    "response.output_text.delta": ("response.output_text.done", "text"),
}
_ENDS = {  # of a part, by its type, in their order
    "audio": ("response.output_audio.done", "response.output_audio_transcript.done"),
    "text": ("response.output_text.done",),
}


@dataclass(slots=True)
class _Part:
    kind: str
    told: set[str] = field(default_factory=set)  # ends that the server has told
    text: str = ""


@dataclass(slots=True)
class _Item:
    response_id: str
    output_index: int
    item: Event
    added: Event | None = None  # `conversation.item.added`
    parts: dict[int, _Part] = field(default_factory=dict)
    put_out: bool = False  # `response.output_item.done` was told


class Unfinished:
    """Give it all events of the server. One call's, over one connection."""

    def __init__(self) -> None:
        self._items: dict[str, _Item] = {}

    def told(self, event: Event) -> None:
        """Raises nothing, whatever the event holds."""
        kind, item = event["type"], event.get("item")
        of_item = item if isinstance(item, dict) else {}
        item_id = event.get("item_id", of_item.get("id"))
        if not isinstance(item_id, str):
            return
        if kind == "response.output_item.added" and len(self._items) < MAX_OPEN:
            index = event.get("output_index")
            self._items[item_id] = _Item(str(event.get("response_id")), _index(index), of_item)
        elif item_id in self._items:
            self._goes_on(item_id, kind, event)

    def end(self) -> list[Event]:
        """The events that end all of it, each item's in their order; then nothing is open."""
        ends = [end for item_id, item in self._items.items() for end in _item_ends(item_id, item)]
        self._items.clear()
        return ends

    def _goes_on(self, item_id: str, kind: str, event: Event) -> None:
        item, index = self._items[item_id], _index(event.get("content_index"))
        match kind:
            case "conversation.item.added":
                item.added = event
            case "response.content_part.added":
                part = event.get("part")
                item.parts[index] = _Part(str(part.get("type")) if isinstance(part, dict) else "")
            case "response.content_part.done":
                item.parts.pop(index, None)
            case "response.output_item.done":
                item.put_out = True
            case _ if index in item.parts and isinstance(delta := event.get("delta"), str):
                if kind in _TEXT:
                    item.parts[index].text += delta
            case _ if index in item.parts:
                item.parts[index].told.add(kind)
        if kind == "conversation.item.done" or (item.put_out and item.added is None):
            del self._items[item_id]


def _index(value: object) -> int:
    return value if isinstance(value, int) else 0


def _item_ends(item_id: str, item: _Item) -> Iterator[Event]:
    for index, part in item.parts.items():
        place = {
            "response_id": item.response_id,
            "item_id": item_id,
            "output_index": item.output_index,
            "content_index": index,
        }
        yield from _part_ends(part, place)
    last = {**item.item, "status": "incomplete"}
    if not item.put_out:
        yield {
            "type": "response.output_item.done",
            "response_id": item.response_id,
            "output_index": item.output_index,
            "item": last,
        }
    if item.added is not None:
        before = item.added.get("previous_item_id")
        yield {"type": "conversation.item.done", "previous_item_id": before, "item": last}


def _part_ends(part: _Part, place: dict[str, Any]) -> Iterator[Event]:
    fields = dict(_TEXT.values())
    for kind in _ENDS.get(part.kind, ()):
        if kind not in part.told:
            text = {fields[kind]: part.text} if kind in fields else {}
            yield {"type": kind, **place, **text}
    name = "transcript" if part.kind == "audio" else "text"
    ended = {"type": part.kind, name: part.text}
    yield {"type": "response.content_part.done", **place, "part": ended}
