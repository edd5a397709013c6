"""One connection's session and conversation: client events in, server events out. No sockets.

Responses are made by `reply.py`; this knows of the active one so much that it can be cancelled.
"""

import base64
import binascii
import copy
import itertools
from collections.abc import Callable
from typing import Any, ClassVar

from tests.realtime_server.script import Script
from tests.realtime_server.sound import BYTES_PER_MS
from tests.realtime_server.turns import Started, Turns

Event = dict[str, Any]
_PCM = {"type": "audio/pcm", "rate": 24000}
EXPIRES_AT = 2_000_000_000  # unix seconds; it never does

_VAD = {
    "type": "server_vad",
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 500,
    "create_response": True,
    "interrupt_response": True,
}
_SILENCES = {"low": 1200, "medium": 800, "auto": 800, "high": 500}  # of semantic_vad


class Refused(Exception):
    """An `error` event to be: code, message and the parameter at fault."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.error = {
            "type": "invalid_request_error",
            "code": code,
            "message": message,
            "param": param,
        }


class Conversation:
    """`say` sends an event; `respond(overrides)` begins a response, `cancel(reason)` ends it.
    `number` is in the ids that are made here."""

    def __init__(
        self,
        script: Script,
        say: Callable[[Event], None],
        respond: Callable[[Event], None],
        cancel: Callable[[str], None],
        number: int,
    ) -> None:
        self.script = script
        self.active: str | None = None  # id of the response that is being made
        self.items: list[Event] = []
        self.durations: dict[str, int] = {}  # ms of the audio of an assistant's item
        self.session: Event = {
            "type": "realtime",
            "object": "realtime.session",
            "id": "sess_test",
            "model": "test-model",
            "output_modalities": ["audio"],
            "instructions": "",
            "audio": {
                "input": {"format": _PCM, "transcription": None, "turn_detection": dict(_VAD)},
                "output": {"format": _PCM, "voice": "tone", "speed": 1.0},
            },
            "tools": [],
            "tool_choice": "auto",
            "max_output_tokens": "inf",
            "expires_at": 1_900_000_000,
        }
        self._say = say
        self._respond = respond
        self._cancel = cancel
        self._ids = (f"{number}_{n}" for n in itertools.count(1))
        self._turns = Turns()
        self._turn_item = ""
        self._buffered = 0  # bytes appended since the last commit

    def begin(self) -> None:
        self._say({"type": "session.created", "session": copy.deepcopy(self.session)})

    def event(self, event: Event) -> None:
        """Take a client event; an error event answers what is wrong with it."""
        handler = self._HANDLERS.get(str(event.get("type")))
        try:
            if handler is None:
                raise Refused("unknown_event", f"no event {event.get('type')!r}", "type")
            handler(self, event)
        except Refused as refused:
            error = {**refused.error, "event_id": event.get("event_id")}
            self._say({"type": "error", "error": error})

    def new_id(self, kind: str) -> str:
        return f"{kind}_{next(self._ids)}"

    def add(self, item: Event, after: str | None = None) -> None:
        """Put an item into the conversation and tell."""
        previous = self.items[-1]["id"] if self.items else None
        if after == "root":
            self.items.insert(0, item)
            previous = None
        elif after is not None and after != previous:
            at = self.items.index(self._item(after))
            self.items.insert(at + 1, item)
            previous = after
        else:
            self.items.append(item)
        self._say(
            {"type": "conversation.item.added", "previous_item_id": previous, "item": dict(item)}
        )

    def done(self, item: Event) -> None:
        at = next((n for n, other in enumerate(self.items) if other["id"] == item["id"]), 0)
        previous = self.items[at - 1]["id"] if at else None
        self._say(
            {"type": "conversation.item.done", "previous_item_id": previous, "item": dict(item)}
        )

    @property
    def turn_detection(self) -> Event | None:
        found: Event | None = self.session["audio"]["input"].get("turn_detection")
        return found

    def _item(self, item_id: object) -> Event:
        for item in self.items:
            if item["id"] == item_id:
                return item
        raise Refused("item_not_found", f"no item {item_id!r}", "item_id")

    def _update(self, event: Event) -> None:
        changes = event.get("session")
        if not isinstance(changes, dict):
            raise Refused("missing_required_parameter", "want an object", "session")
        if self.script.refuse_session:
            raise Refused("invalid_value", "this session will not do", "session.instructions")
        if changes.get("type") != "realtime":
            raise Refused("missing_required_parameter", "want 'realtime'", "session.type")
        if self.script.ignore_session:
            return
        self._forget_other_detection(changes)
        self.session = merged(self.session, changes)
        detection = self.turn_detection or {}
        self._turns.padding_ms = detection.get("prefix_padding_ms", 300)
        self._turns.silence_ms = detection.get(
            "silence_duration_ms", _SILENCES.get(detection.get("eagerness", ""), 500)
        )
        self._say({"type": "session.updated", "session": copy.deepcopy(self.session)})

    def _forget_other_detection(self, changes: Event) -> None:
        """Another type of turn detection keeps nothing of the last one's settings."""
        given = changes.get("audio", {}).get("input", {}).get("turn_detection")
        had = self.turn_detection
        if given and had and given.get("type", had["type"]) != had["type"]:
            self.session["audio"]["input"]["turn_detection"] = None

    def _append(self, event: Event) -> None:
        try:
            samples = base64.b64decode(event["audio"], validate=True)
        except (KeyError, TypeError, binascii.Error) as error:
            raise Refused("invalid_value", "want base64", "audio") from error
        if len(samples) % 2:
            raise Refused("invalid_value", "half a sample", "audio")
        self._buffered += len(samples)
        if self.turn_detection is None:
            return
        for news in self._turns.hear(samples):
            if isinstance(news, Started):
                self._speech_started(news.audio_start_ms)
            else:
                self._speech_stopped(news.audio_end_ms)

    def _speech_started(self, at: int) -> None:
        self._turn_item = self.new_id("item")
        kind = "input_audio_buffer.speech_started"
        self._say({"type": kind, "audio_start_ms": at, "item_id": self._turn_item})
        if self.active and (self.turn_detection or {}).get("interrupt_response", True):
            self._cancel("turn_detected")

    def _speech_stopped(self, at: int) -> None:
        kind = "input_audio_buffer.speech_stopped"
        self._say({"type": kind, "audio_end_ms": at, "item_id": self._turn_item})
        self._take_turn(self._turn_item)
        if (self.turn_detection or {}).get("create_response", True) and not self.active:
            self._respond({})

    def _take_turn(self, item_id: str) -> None:
        seconds, self._buffered = self._buffered / BYTES_PER_MS / 1000, 0
        kind = "input_audio_buffer.committed"
        previous = self.items[-1]["id"] if self.items else None
        self._say({"type": kind, "previous_item_id": previous, "item_id": item_id})
        content = [{"type": "input_audio", "transcript": None}]
        item = _item(item_id, "message", role="user", status="completed", content=content)
        self.add(item)
        self.done(item)
        kind = "conversation.item.input_audio_transcription.completed"
        if self.session["audio"]["input"].get("transcription") and self.script.heard:
            usage = {"type": "duration", "seconds": seconds}
            of = {"item_id": item_id, "content_index": 0, "transcript": self.script.heard}
            self._say({"type": kind, **of, "usage": usage})

    def _commit(self, event: Event) -> None:
        if not self._buffered:
            raise Refused("input_audio_buffer_commit_empty", "nothing was appended")
        self._take_turn(self.new_id("item"))

    def _clear(self, event: Event) -> None:
        self._buffered = 0
        self._say({"type": "input_audio_buffer.cleared"})

    def _create_item(self, event: Event) -> None:
        given = event.get("item")
        if not isinstance(given, dict) or "type" not in given:
            raise Refused("missing_required_parameter", "want an item with a type", "item")
        item = {
            "object": "realtime.item",
            "status": "completed",
            "id": self.new_id("item"),
            **given,
        }
        self.add(item, event.get("previous_item_id"))
        self.done(item)

    def _retrieve(self, event: Event) -> None:
        item = dict(self._item(event.get("item_id")))
        self._say({"type": "conversation.item.retrieved", "item": item})

    def _delete(self, event: Event) -> None:
        item = self._item(event.get("item_id"))
        self.items.remove(item)
        self._say({"type": "conversation.item.deleted", "item_id": item["id"]})

    def _truncate(self, event: Event) -> None:
        item, end = self._item(event.get("item_id")), event.get("audio_end_ms")
        if item["id"] not in self.durations:
            text = "Only model output audio messages can be truncated"
            raise Refused("unsupported_content_type", text, "item_id")
        if not isinstance(end, int) or not 0 < end <= self.durations[item["id"]]:
            text = f"the audio has {self.durations[item['id']]} ms, and {end} was asked for"
            raise Refused("invalid_value", text, "audio_end_ms")
        self.durations[item["id"]] = end
        item["content"] = [{"type": "output_audio", "transcript": ""}]
        of = {"item_id": item["id"], "content_index": 0, "audio_end_ms": end}
        self._say({"type": "conversation.item.truncated", **of})

    def _create_response(self, event: Event) -> None:
        if self.active:
            text = f"{self.active} is being made; response.create comes after its response.done"
            raise Refused("conversation_already_has_active_response", text)
        self._respond(event.get("response") or {})

    def _cancel_response(self, event: Event) -> None:
        asked = event.get("response_id")
        if not self.active or asked not in (None, self.active):
            raise Refused("response_cancel_not_active", "no response is being made")
        self._cancel("client_cancelled")

    _HANDLERS: ClassVar[dict[str, Callable[["Conversation", Event], None]]] = {
        "session.update": _update,
        "input_audio_buffer.append": _append,
        "input_audio_buffer.commit": _commit,
        "input_audio_buffer.clear": _clear,
        "conversation.item.create": _create_item,
        "conversation.item.retrieve": _retrieve,
        "conversation.item.delete": _delete,
        "conversation.item.truncate": _truncate,
        "response.create": _create_response,
        "response.cancel": _cancel_response,
    }


def _item(item_id: str, kind: str, **fields: Any) -> Event:
    return {"id": item_id, "object": "realtime.item", "type": kind, **fields}


def merged(old: Event, new: Event) -> Event:
    """`new` over `old`, objects key by key; null and lists replace."""
    both = old | new
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            both[key] = merged(before, value)
    return both
