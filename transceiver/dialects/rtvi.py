"""Pipecat's RTVI protocol on the channel `chat`, in front of Realtime events. Pure.

Messages are `{"label": "rtvi-ai", "id", "type", "data"}`, names and fields as
`@pipecat-ai/client-js` has them. Its transport also sends `ping: …` each second, which nobody
answers, and `{"type": "signalling"}`, which is about video.
"""

import json
from collections.abc import Callable
from typing import Any

from transceiver.dialects.base import HANG_UP, Heard, Message
from transceiver.dialects.reading import WANTED, read
from transceiver.events import Event, NewId

LABEL = "chat"
PROTOCOL = "2.1.0"  # its version; clients compare the first number
MAX_UNSPOKEN = 50  # segments

_SAYS = {  # Realtime event -> messages without data
    "response.created": ("bot-llm-started",),
    "response.done": ("bot-llm-stopped",),
    "output_audio_buffer.started": ("bot-started-speaking",),
    "output_audio_buffer.stopped": ("bot-stopped-speaking",),
    "output_audio_buffer.cleared": ("bot-interrupted", "bot-stopped-speaking"),
    "input_audio_buffer.speech_started": ("user-started-speaking",),
    "input_audio_buffer.speech_stopped": ("user-stopped-speaking",),
}
_ENDS = ("output_audio_buffer.stopped", "output_audio_buffer.cleared")
_DELTAS = ("response.output_audio_transcript.delta", "response.output_text.delta")


class Rtvi:
    """`stamp` gives the time of day in ISO 8601."""

    listens = True

    def __init__(self, new_id: NewId, stamp: Callable[[], str]) -> None:
        self._new_id = new_id
        self._stamp = stamp
        self._responding = False
        self._sounding = False
        self._segments = 0
        self._unspoken: list[dict[str, Any]] = []  # segments on their way to the client's ear

    def said(self, event: Event) -> list[Message]:
        kind = event["type"]
        if kind in ("response.created", "response.done"):
            self._responding = kind == "response.created"
        elif kind.startswith("output_audio_buffer."):
            self._sounding = kind == "output_audio_buffer.started"
        if kind in _SAYS:
            return [*self._spoken(kind), *(self._message(name) for name in _SAYS[kind])]
        if kind in _DELTAS:
            return [self._message("bot-llm-text", {"text": event["delta"]})]
        match kind:
            case "response.output_audio_transcript.done":
                text = event["transcript"]
                spoken = self._message("bot-transcription", {"text": text})
                return [spoken, self._output(text, spoken=True)]
            case "response.output_text.done":
                return [self._output(event["text"], spoken=False)]
            case "conversation.item.input_audio_transcription.completed":
                return [self._transcription(event["transcript"])]
            case "response.function_call_arguments.done":
                return [self._function_call(event)]
            case "error":
                return [self._error(event["error"])]
        return []

    def received(self, message: Message) -> Heard:
        if isinstance(message, str) and message.startswith("ping"):
            return [], []
        value = read(message)
        if value is None:
            return [], [self._message("error", {"error": WANTED, "fatal": False})]
        if value.get("label") != "rtvi-ai":
            return [], []
        data, of = value.get("data"), value.get("id")
        return self._heard(
            value.get("type"),
            data if isinstance(data, dict) else {},
            of if isinstance(of, str) else "",
        )

    def too_large(self) -> list[Message]:
        return [self._message("error", {"error": "the message is too large", "fatal": False})]

    def undelivered(self) -> list[Message]:
        detail = "a message is lost: it is above the a=max-message-size of the offer"
        return [self._message("error", {"error": detail, "fatal": False})]

    def _heard(self, kind: object, data: dict[str, Any], of: str) -> Heard:
        match kind:
            case "client-ready":
                ready = {"version": PROTOCOL, "about": {"library": "ferryline"}}
                return [], [self._message("bot-ready", ready, of)]
            case "send-text" if isinstance(data.get("content"), str):
                return self._text(data["content"], data.get("options"), of), []
            case "llm-function-call-result" if isinstance(data.get("tool_call_id"), str):
                return _result(data["tool_call_id"], data.get("result"), of), []
            case "disconnect-bot":
                return [HANG_UP], []
        return [], [self._message("error-response", {"error": f"cannot do {str(kind)[:64]!r}"}, of)]

    def _text(self, content: str, options: object, of: str) -> list[Event]:
        """A written message; it is answered at once, whatever is being said, unless told else."""
        asked = options if isinstance(options, dict) else {}
        part = {"type": "input_text", "text": content}
        item = {"type": "message", "role": "user", "content": [part]}
        create: Event = {"type": "conversation.item.create", "item": item}
        if asked.get("run_immediately", True) is False:
            return _caused(of, [create])
        silence: list[Event] = []
        if self._responding:
            silence.append({"type": "response.cancel"})
        if self._sounding:
            silence.append({"type": "output_audio_buffer.clear"})
        respond: Event = {"type": "response.create"}
        if asked.get("audio_response", True) is False:
            respond["response"] = {"output_modalities": ["text"]}
        return silence + _caused(of, [create, respond])

    def _output(self, text: str, *, spoken: bool) -> str:
        """A segment, when its text is complete; `_spoken` tells that it was heard."""
        self._segments += 1
        segment = {
            "text": text,
            "output_type": "sentence",
            "aggregated_by": "sentence",  # the older name
            "segment_id": self._segments,
            "will_be_spoken": spoken,
        }
        if spoken:
            self._unspoken = [*self._unspoken, segment][-MAX_UNSPOKEN:]
        return self._message("bot-output", {**segment, "spoken_status": "new"})

    def _spoken(self, kind: str) -> list[Message]:
        """What was being said is over: segments that were heard whole."""
        if kind not in _ENDS:
            return []
        segments, self._unspoken = self._unspoken, []
        if kind == "output_audio_buffer.cleared":
            return []
        return [
            self._message("bot-output", {**segment, "spoken_status": "completed"})
            for segment in segments
        ]

    def _transcription(self, text: str) -> str:
        data = {"text": text, "final": True, "timestamp": self._stamp(), "user_id": ""}
        return self._message("user-transcription", data)

    def _function_call(self, event: Event) -> str:
        call = {
            "function_name": event.get("name"),
            "tool_call_id": event["call_id"],
            "arguments": read(event["arguments"]) or {},
        }
        return self._message("llm-function-call-in-progress", call)

    def _error(self, error: dict[str, Any]) -> str:
        """To the message that caused it, if one did."""
        data = {"error": error["message"]}
        if error.get("event_id"):
            return self._message("error-response", data, error["event_id"])
        return self._message("error", {**data, "fatal": False})

    def _message(self, kind: str, data: dict[str, Any] | None = None, of: str = "") -> str:
        message = {"label": "rtvi-ai", "id": of or self._new_id("rtvi"), "type": kind}
        return json.dumps(message if data is None else {**message, "data": data})


def _result(call_id: str, result: object, of: str) -> list[Event]:
    """What a function of the client gave; the model goes on with it."""
    output = result if isinstance(result, str) else json.dumps(result)
    item = {"type": "function_call_output", "call_id": call_id, "output": output}
    create: Event = {"type": "conversation.item.create", "item": item}
    return _caused(of, [create, {"type": "response.create"}])


def _caused(of: str, events: list[Event]) -> list[Event]:
    """The events, with the id of the client's message: an error names it."""
    return [{**event, "event_id": of} for event in events] if of else events
