"""What a server must be told of a conversation that it was not there for. Pure.

Text alone: what was written, transcripts of what was said, of replies as much as was heard, calls
of functions and their outputs. Sound without a transcript is left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from transceiver.events import Event
from transceiver.remembered import Heard, as_text
from transceiver.session.items import Item, heard_part

MAX_ITEMS = 1000
MAX_TEXT = 1024 * 1024  # characters of all items
CREATE = "conversation.item.create"

_TOLD = ("conversation.item.added", "conversation.item.done", "response.output_item.done")
_TRANSCRIBED = (
    "conversation.item.input_audio_transcription.completed",
    "response.output_audio_transcript.done",
)
_BYTES_PER_MS = 48  # of the sound that comes down
_CALLS = {
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
}


@dataclass(slots=True)
class _Known:
    item: dict[str, Any]
    texts: dict[int, str] = field(default_factory=dict)  # by content index
    received: int = 0  # bytes of sound
    heard_ms: int | None = None  # of it, if it was cut
    size: int = 0  # characters, when it was last weighed: that is done often, and of few

    def weigh(self) -> None:
        fields = (value for value in self.item.values() if isinstance(value, str))
        self.size = sum(map(len, self.texts.values())) + sum(map(len, fields))


class _Asked(NamedTuple):
    event: Event
    size: int  # characters of JSON


class Memory:
    """Give it what goes by in both directions."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}  # in the order of the conversation
        self._asked: list[_Asked] = []  # items that the client sent and nobody confirmed

    def asked(self, event: Event) -> None:
        """The client's `conversation.item.create` went up."""
        if event in self.unconfirmed():
            return
        self._asked.append(_Asked(event, len(json.dumps(event))))
        while len(self._asked) > MAX_ITEMS or sum(asked.size for asked in self._asked) > MAX_TEXT:
            del self._asked[0]

    def told(self, event: Event) -> None:
        """An event of the server."""
        kind, item = event["type"], event.get("item")
        if kind in _TOLD and isinstance(item, dict) and isinstance(item.get("id"), str):
            self._learn(item, event.get("previous_item_id"))
        elif kind == "conversation.item.deleted":
            self._known.pop(str(event.get("item_id")), None)
        elif kind == "conversation.item.truncated" and isinstance(event.get("audio_end_ms"), int):
            self.heard(str(event.get("item_id")), event["audio_end_ms"])
        elif kind in _TRANSCRIBED:
            self._write(event, event.get("transcript"))
        elif kind == "response.output_audio_transcript.delta":
            self._write(event, event.get("delta"), more=True)
        elif kind == "error":
            self._refused(event)

    def sound(self, item_id: str, size: int) -> None:
        """So many bytes of the item's sound came."""
        if known := self._known.get(item_id):
            known.received += size

    def heard(self, item_id: str, ms: int) -> None:
        """The item's sound was cut: the client has heard so much of it."""
        if known := self._known.get(item_id):
            known.heard_ms = ms

    def restore(self, items: Sequence[Item]) -> None:
        """The conversation began elsewhere, with these."""
        for item in items:
            self._learn(item, None)

    def remembered(self, heard: Mapping[str, Heard]) -> list[Item]:
        """For another call: all of it as text. `heard`: of the items that play."""
        told = (as_text(_whole(known), heard.get(key)) for key, known in self._known.items())
        return [item for item in told if item]

    def items(self) -> list[Event]:
        """Items for `conversation.item.create`, in order, under their own ids."""
        return [item for known in self._known.values() if (item := _written(known))]

    def unconfirmed(self) -> list[Event]:
        """Events of the client that no server is known to have taken. They are asked again."""
        return [asked.event for asked in self._asked]

    def _learn(self, item: dict[str, Any], previous: object) -> None:
        known = self._known.get(item["id"])
        if known is None:
            known = _Known(item)
            self._insert(item["id"], known, previous)
            self._confirm(item)
        known.item = {k: v for k, v in item.items() if k not in ("content", "object")}
        content = item.get("content")
        for index, part in enumerate(content if isinstance(content, list) else ()):
            text = part.get("text") or part.get("transcript") if isinstance(part, dict) else None
            if isinstance(text, str):
                known.texts[index] = text
        known.weigh()
        self._bound()

    def _insert(self, item_id: str, known: _Known, previous: object) -> None:
        last = next(reversed(self._known), None)
        if isinstance(previous, str) and previous in self._known and previous != last:
            entries = list(self._known.items())
            at = 1 + next(n for n, (key, _) in enumerate(entries) if key == previous)
            self._known = dict([*entries[:at], (item_id, known), *entries[at:]])
        else:
            self._known[item_id] = known

    def _bound(self) -> None:
        size = sum(known.size for known in self._known.values())
        while self._known and (len(self._known) > MAX_ITEMS or size > MAX_TEXT):
            size -= self._known.pop(next(iter(self._known))).size

    def _write(self, event: Event, text: object, more: bool = False) -> None:
        known, index = self._known.get(str(event.get("item_id"))), event.get("content_index", 0)
        if known is not None and isinstance(text, str) and isinstance(index, int):
            before = known.texts.get(index, "") if more else ""
            known.texts[index] = (before + text)[:MAX_TEXT]
            known.weigh()

    def _confirm(self, item: dict[str, Any]) -> None:
        for at, asked in enumerate(self._asked):
            if _is_of(asked.event.get("item"), item):
                del self._asked[at]
                return

    def _refused(self, event: Event) -> None:
        error = event.get("error")
        event_id = error.get("event_id") if isinstance(error, dict) else None
        if event_id is not None:
            self._asked = [a for a in self._asked if a.event.get("event_id") != event_id]


def _is_of(asked: Any, item: dict[str, Any]) -> bool:
    """Whether the client's item has become this one of the server's."""
    if not isinstance(asked, dict):
        return False
    if asked.get("id") is not None:
        return bool(asked["id"] == item["id"])
    return all(asked.get(key) == item.get(key) for key in ("type", "role", "call_id")) and (
        _kinds(asked) == _kinds(item)
    )


def _kinds(item: dict[str, Any]) -> list[object]:
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    return [part.get("type") for part in parts if isinstance(part, dict)]


def _written(known: _Known) -> dict[str, Any] | None:
    """The item as text, if there is any."""
    item, kind = known.item, known.item.get("type")
    if fields := _CALLS.get(str(kind)):
        if item.get("status") == "in_progress":
            return None
        return {"id": item["id"], "type": kind} | {key: item.get(key) for key in fields}
    if kind != "message":
        return None
    texts = _texts(known)
    part = "output_text" if item.get("role") == "assistant" else "input_text"
    content = [{"type": part, "text": text} for text in texts if text]
    if not content:
        return None
    return {"id": item["id"], "type": kind, "role": item.get("role"), "content": content}


def _texts(known: _Known) -> list[str]:
    """What is written of a message, as much as was heard of it."""
    texts = [known.texts[index] for index in sorted(known.texts)]
    if known.heard_ms is None:
        return texts
    received_ms = known.received // _BYTES_PER_MS
    return [heard_part(text, known.heard_ms, received_ms) for text in texts]


def _whole(known: _Known) -> Item:
    return {**known.item, "content": [{"text": text} for text in _texts(known)]}
