"""OpenAI Realtime events in the names of the beta API (`OpenAI-Beta: realtime=v1`). Pure.

Tables of what has another name there: events, fields of a session and of a response, kinds of
content. What is in no table is the same in both.
"""

from typing import Any

from transceiver.dialects.base import Heard, Message
from transceiver.dialects.realtime import Realtime
from transceiver.events import Event

EVENTS = {  # of ours: general availability -> beta
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
    "conversation.item.added": "conversation.item.created",
}
UNKNOWN = frozenset({"conversation.item.done"})  # to the beta API

CONTENT = {"output_text": "text", "output_audio": "audio"}
_CONTENT_BACK = {beta: ours for ours, beta in CONTENT.items()}

FORMATS: dict[str, dict[str, Any]] = {
    "pcm16": {"type": "audio/pcm", "rate": 24000},
    "g711_ulaw": {"type": "audio/pcmu"},
    "g711_alaw": {"type": "audio/pcma"},
}
_FORMATS_BACK = {value["type"]: name for name, value in FORMATS.items()}

Path = tuple[str, ...]

OUTPUT: dict[str, Path] = {  # beta field -> where it is with us; of responses too
    "modalities": ("output_modalities",),
    "voice": ("audio", "output", "voice"),
    "output_audio_format": ("audio", "output", "format"),
}
SESSION: dict[str, Path] = {
    **OUTPUT,
    "speed": ("audio", "output", "speed"),
    "input_audio_format": ("audio", "input", "format"),
    "input_audio_transcription": ("audio", "input", "transcription"),
    "input_audio_noise_reduction": ("audio", "input", "noise_reduction"),
    "turn_detection": ("audio", "input", "turn_detection"),
    "max_response_output_tokens": ("max_output_tokens",),
}
REQUEST = {**OUTPUT, "max_response_output_tokens": ("max_output_tokens",)}  # response.create


class Beta(Realtime):
    def said(self, event: Event) -> list[Message]:
        if event["type"] in UNKNOWN:
            return []
        return super().said(to_beta(event))

    def received(self, message: Message) -> Heard:
        events, answers = super().received(message)
        return [from_beta(event) for event in events], answers


def to_beta(event: Event) -> Event:
    """One of our events as a client of the beta API reads it."""
    kind = event["type"]
    told = {**event, "type": EVENTS.get(kind, kind)}
    if isinstance(session := event.get("session"), dict):
        told["session"] = _flattened(session, SESSION)
        told["session"].pop("type", None)
    if isinstance(response := event.get("response"), dict):
        response = told["response"] = _flattened(response, OUTPUT)
        if isinstance(output := response.get("output"), list):
            response["output"] = [_item(item, CONTENT) for item in output]
    if "item" in event:
        told["item"] = _item(event["item"], CONTENT)
    return told


def from_beta(event: Event) -> Event:
    """An event of such a client as we name it; what cannot be read is left for the backend."""
    told = dict(event)
    if isinstance(session := event.get("session"), dict):
        told["session"] = {"type": "realtime", **_nested(session, SESSION)}
    if isinstance(response := event.get("response"), dict):
        response = told["response"] = _nested(response, REQUEST)
        if isinstance(items := response.get("input"), list):
            response["input"] = [_item(item, _CONTENT_BACK) for item in items]
    if "item" in event:
        told["item"] = _item(event["item"], _CONTENT_BACK)
    return told


def _flattened(ours: dict[str, Any], table: dict[str, Path]) -> dict[str, Any]:
    """Our fields at their paths as fields of the beta API."""
    beta = {key: value for key, value in ours.items() if key != "audio"}
    for name, path in table.items():
        value: Any = ours
        for key in path:
            value = value.get(key, _flattened) if isinstance(value, dict) else _flattened
        if value is not _flattened:
            beta.pop(path[0], None)
            beta[name] = _value_to_beta(name, value)
    return beta


def _nested(beta: dict[str, Any], table: dict[str, Path]) -> dict[str, Any]:
    """Fields of the beta API at the paths that they have with us."""
    ours = {key: value for key, value in beta.items() if key not in table}
    for name, path in table.items():
        if name in beta:
            place = ours
            for key in path[:-1]:
                inner = place.get(key)
                place[key] = dict(inner) if isinstance(inner, dict) else {}
                place = place[key]
            place[path[-1]] = _value_from_beta(name, beta[name])
    return ours


def _value_to_beta(name: str, value: Any) -> Any:
    if name == "modalities":  # there speech never comes without its text
        return ["text", "audio"] if value == ["audio"] else value
    if name.endswith("_audio_format") and isinstance(value, dict):
        return _FORMATS_BACK.get(str(value.get("type")), "pcm16")
    return value


def _value_from_beta(name: str, value: Any) -> Any:
    if name == "modalities" and isinstance(value, list):
        return ["audio"] if "audio" in value else value
    if name.endswith("_audio_format") and isinstance(value, str):
        return FORMATS.get(value, value)
    return value


def _item(item: Any, names: dict[str, str]) -> Any:
    """The item with its kinds of content renamed."""
    if not isinstance(item, dict) or not isinstance(item.get("content"), list):
        return item
    return {**item, "content": [_part(part, names) for part in item["content"]]}


def _part(part: Any, names: dict[str, str]) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return part
    return {**part, "type": names.get(part["type"], part["type"])}
