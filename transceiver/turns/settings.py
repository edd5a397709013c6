"""What a client asks of turn detection, and what we add: how sensitive, how long.

Pure. `Settings` is `turn_detection` of a Realtime session; `Limits` are ours, per deployment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

SILENCE_MS = {"low": 1200, "medium": 800, "auto": 800, "high": 500}  # of semantic_vad's eagerness
MIN_PREFIX_MS = 300  # less would cut a short word
MAX_PREFIX_MS = 2_000
MAX_SILENCE_MS = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults are those of OpenAI's `server_vad`."""

    threshold: float = 0.5  # of the probability at which speech begins
    silence_ms: int = 500  # so long, and the turn has ended
    prefix_ms: int = 300  # before the first sound of speech that belong to the turn
    create_response: bool = True
    interrupt_response: bool = True

    @classmethod
    def of(cls, turn_detection: Mapping[str, Any] | None) -> "Settings | None":
        """Read a session's `turn_detection`; None for null: the client says when turns end.

        `semantic_vad` is the same detector with a silence by eagerness. Fields that are absent or
        null have their defaults, unknown ones are left alone, and a prefix below 300 ms becomes
        300. Raises `ValueError` that names field, value and mend.
        """
        if turn_detection is None:
            return None
        given = {name: value for name, value in turn_detection.items() if value is not None}
        kind = given.get("type", "server_vad")
        if kind == "semantic_vad":
            eagerness = given.get("eagerness", "auto")
            if not isinstance(eagerness, str) or eagerness not in SILENCE_MS:
                raise _error("eagerness", eagerness, f"one of {', '.join(SILENCE_MS)}")
            given = {name: given[name] for name in _RESPONSES if name in given}
            given["silence_duration_ms"] = SILENCE_MS[eagerness]
        elif kind != "server_vad":
            raise _error("type", kind, "server_vad or semantic_vad, or turn_detection null")
        usual = cls()
        prefix = _whole(given, "prefix_padding_ms", usual.prefix_ms, 0, MAX_PREFIX_MS)
        return cls(
            threshold=_share(given, "threshold", usual.threshold),
            silence_ms=_whole(given, "silence_duration_ms", usual.silence_ms, 1, MAX_SILENCE_MS),
            prefix_ms=max(MIN_PREFIX_MS, prefix),
            create_response=_yes(given, "create_response"),
            interrupt_response=_yes(given, "interrupt_response"),
        )


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What counts as speech, beside the client's settings."""

    min_speech_ms: int = 60  # less is no turn and no interruption
    threshold: float | None = None  # instead of the client's; None = the client's


@dataclass(frozen=True, slots=True)
class Limits:
    quiet: Sensitivity = Sensitivity()
    playing: Sensitivity = Sensitivity()  # while the agent speaks
    longest_turn_ms: int = 60_000
    absence_ms: int = 100  # without a packet for longer is silence, not a late packet


_RESPONSES = ("create_response", "interrupt_response")


def _share(given: Mapping[str, Any], field: str, default: float) -> float:
    value = given.get(field, default)
    if not _number(value) or not 0 <= value <= 1:
        raise _error(field, value, "a number from 0 to 1")
    return float(value)


def _whole(given: Mapping[str, Any], field: str, default: int, low: int, high: int) -> int:
    value = given.get(field, default)
    if not _number(value) or value != int(value) or not low <= value <= high:
        raise _error(field, value, f"whole milliseconds from {low} to {high}")
    return int(value)


def _yes(given: Mapping[str, Any], field: str) -> bool:
    value = given.get(field, True)
    if not isinstance(value, bool):
        raise _error(field, value, "true or false")
    return value


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < inf


def _error(field: str, value: object, mend: str) -> ValueError:
    return ValueError(f"turn_detection.{field} {str(value)[:40]!r}: give {mend}")
