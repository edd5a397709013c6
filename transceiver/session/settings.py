"""The session object of a call: what the client asked for over what it gets otherwise. Pure.

Updates merge key by key. Fields that nobody here knows are kept and shown; read-only ones are left
as they are. The fields that are known are checked, so that what is shown can be read by any client.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from transceiver.session.fields import Refusal, invalid, is_number, mapping, size
from transceiver.turns.settings import Settings as TurnSettings

MAX_SESSION = 128 * 1024  # characters of JSON: updates add up
MIN_IDLE_MS = 1000
MAX_IDLE_MS = 24 * 3600 * 1000  # no session is longer
READ_ONLY = ("id", "object", "expires_at", "model")

Modality = Literal["audio", "text"]

_FORMAT = {"type": "audio/pcm", "rate": 24000}  # shown; over WebRTC the SDP decides
_SERVER_VAD = {
    "type": "server_vad",
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 500,
    "idle_timeout_ms": None,
    "create_response": True,
    "interrupt_response": True,
}
_SEMANTIC_VAD = {
    "type": "semantic_vad",
    "eagerness": "auto",
    "create_response": True,
    "interrupt_response": True,
}
_DETECTIONS: dict[str, dict[str, Any]] = {"server_vad": _SERVER_VAD, "semantic_vad": _SEMANTIC_VAD}
_KINDS = ("format", "tool_choice", "truncation", "turn_detection")  # fields depend on their `type`


@dataclass(frozen=True, slots=True)
class Settings:
    """Never changed in place: `shown` may wait in an event that has not been sent yet."""

    shown: dict[str, Any]

    @classmethod
    def initial(cls, session_id: str, model: str, expires_at: int, detects: bool) -> "Settings":
        """`expires_at` in unix seconds. `detects`: turns are taken by voice unless told else."""
        detection = _SERVER_VAD if detects else None
        hears = {"format": _FORMAT, "noise_reduction": None, "transcription": None}
        speaks = {"format": _FORMAT, "voice": model, "speed": 1.0}
        return cls(
            {
                "type": "realtime",
                "object": "realtime.session",
                "id": session_id,
                "model": model,
                "output_modalities": ["audio"],
                "instructions": "",
                "audio": {"input": hears | {"turn_detection": detection}, "output": speaks},
                "tools": [],
                "tool_choice": "auto",
                "max_output_tokens": "inf",
                "tracing": None,
                "truncation": "auto",
                "prompt": None,
                "include": None,
                "expires_at": expires_at,
            }
        )

    def updated(self, changes: object) -> "Settings":
        """With a client's `session` over it. Raises `Refusal`; then nothing of it holds."""
        wanted = {k: v for k, v in mapping(changes, "session").items() if k not in READ_ONLY}
        session = merged(self.shown, wanted)
        _check(session)
        hears = session["audio"]["input"]
        detection = _detection(hears["turn_detection"])
        session["audio"] = session["audio"] | {"input": hears | {"turn_detection": detection}}
        if size(session, "session") > MAX_SESSION:
            detail = f"the session would take more than {MAX_SESSION} characters"
            raise Refusal("session_too_large", detail, "session")
        return Settings(session)

    @property
    def turn_detection(self) -> dict[str, Any] | None:
        detection: dict[str, Any] | None = self.shown["audio"]["input"]["turn_detection"]
        return detection

    @property
    def creates_response(self) -> bool:
        """At the end of a turn."""
        return self._asks("create_response")

    @property
    def interrupts(self) -> bool:
        """Speech silences the reply."""
        return self._asks("interrupt_response")

    @property
    def idle_timeout_s(self) -> float | None:
        """A response is made after so much silence."""
        timeout_ms = (self.turn_detection or {}).get("idle_timeout_ms")
        return None if timeout_ms is None else timeout_ms / 1000

    @property
    def transcribes(self) -> bool:
        """The client wants to read what was said."""
        return self.shown["audio"]["input"]["transcription"] is not None

    def _asks(self, name: str) -> bool:
        """Null and nothing mean yes."""
        return self.turn_detection is not None and self.turn_detection.get(name) is not False


def is_modalities(value: object) -> bool:
    """`["audio"]` or `["text"]`; both is audio, which has its transcript."""
    return isinstance(value, list) and value in (["audio"], ["text"], *_BOTH)


def is_max_tokens(value: object) -> bool:
    return value == "inf" or (is_number(value) and value != 0)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_object_or_null(value: object) -> bool:
    return value is None or isinstance(value, dict)


def _is_text_or_object(value: object) -> bool:
    return isinstance(value, str | dict)


def _is_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _is_speed(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.25 <= value <= 1.5


_BOTH = (["audio", "text"], ["text", "audio"])
_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    "type": (lambda value: value == "realtime", "'realtime'"),
    "output_modalities": (is_modalities, "['audio'] or ['text']"),
    "instructions": (lambda value: isinstance(value, str), "a string"),
    "audio": (_is_object, "an object"),
    "audio.input": (_is_object, "an object"),
    "audio.input.format": (_is_object, "an object"),
    "audio.input.noise_reduction": (_is_object_or_null, "an object or null"),
    "audio.input.transcription": (_is_object_or_null, "an object or null"),
    "audio.input.turn_detection": (_is_object_or_null, "an object or null"),
    "audio.output": (_is_object, "an object"),
    "audio.output.format": (_is_object, "an object"),
    "audio.output.voice": (_is_text_or_object, "a string or an object"),
    "audio.output.speed": (_is_speed, "a number from 0.25 to 1.5"),
    "tools": (_is_objects, "a list of objects"),
    "tool_choice": (_is_text_or_object, "a string or an object"),
    "max_output_tokens": (is_max_tokens, "an integer from 1, or 'inf'"),
    "tracing": (lambda value: value == "auto" or _is_object_or_null(value), "'auto' or null"),
    "truncation": (_is_text_or_object, "a string or an object"),
    "prompt": (_is_object_or_null, "an object or null"),
    "include": (lambda value: value is None or isinstance(value, list), "a list or null"),
}


def _check(session: Mapping[str, Any]) -> None:
    """Outer fields come first in the table: an inner one is only looked up in an object."""
    for path, (is_right, want) in _CHECKS.items():
        value: Any = session
        for key in path.split("."):
            value = value[key]
        if not is_right(value):
            raise invalid(f"session.{path}", value, want)


def _detection(asked: dict[str, Any] | None) -> dict[str, Any] | None:
    """What was asked over the defaults of its type. Raises `Refusal`."""
    if asked is None:
        return None
    param = "session.audio.input.turn_detection"
    kind = asked.get("type")
    if not isinstance(kind, str) or kind not in _DETECTIONS:
        raise invalid(f"{param}.type", kind, " or ".join(map(repr, _DETECTIONS)))
    timeout_ms = asked.get("idle_timeout_ms")
    if timeout_ms is not None and not _is_idle_time(timeout_ms):
        want = f"an integer from {MIN_IDLE_MS} to {MAX_IDLE_MS}, or null"
        raise invalid(f"{param}.idle_timeout_ms", timeout_ms, want)
    try:
        TurnSettings.of(asked)
    except ValueError as error:
        raise Refusal("invalid_value", f"{param}: {error}", param) from None
    return _DETECTIONS[kind] | asked


def _is_idle_time(value: object) -> bool:
    return is_number(value) and MIN_IDLE_MS <= value <= MAX_IDLE_MS


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """`new` over `old`, objects key by key; null, lists and other kinds of an object replace."""
    both = old | new
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            other = key in _KINDS and value.get("type", before.get("type")) != before.get("type")
            both[key] = value if other else merged(before, value)
    return both
