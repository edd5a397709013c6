"""What is counted of a conversation, from what its backend tells the client. Pure."""

import bisect
import math
from collections.abc import Callable

from transceiver.counts import Counts
from transceiver.events import Event

STATUSES = ("completed", "cancelled", "failed", "incomplete")  # of a response that is over
FAULTS = (  # of a backend: codes of its errors
    "backend_unavailable",
    "backend_overloaded",
    "backend_overrun",
    "backend_reconnected",
)
ANSWER_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 3.0, 5.0, 10.0, math.inf)  # seconds


class Tally:
    """One call's: give it every event, in order. The totals are those of `counts`."""

    def __init__(self, counts: Counts, clock: Callable[[], float]) -> None:
        self._counts = counts
        self._clock = clock
        self._waiting_since: float | None = None  # the end of a turn without an answer

    def note(self, event: Event) -> None:
        counts = self._counts
        match event.get("type"):
            case "input_audio_buffer.speech_started":
                self._waiting_since = None
            case "input_audio_buffer.speech_stopped":
                self._waiting_since = self._clock()
            case "input_audio_buffer.committed":
                counts.turns += 1
            case "output_audio_buffer.started":
                self._answered()
            case "output_audio_buffer.cleared":
                counts.interruptions += 1
            case "response.done":
                counts.responses[_one_of(STATUSES, event, "response", "status")] += 1
            case "error":
                counts.faults[_one_of(FAULTS, event, "error", "code")] += 1

    def _answered(self) -> None:
        if self._waiting_since is None:
            return
        took = self._clock() - self._waiting_since
        self._waiting_since = None
        self._counts.answers[bisect.bisect_left(ANSWER_BUCKETS, took)] += 1
        self._counts.answers_s += took


def _one_of(known: tuple[str, ...], event: Event, part: str, key: str) -> str:
    """`event[part][key]`, or "other": labels are a closed set, whatever a server says."""
    inner = event.get(part)
    value = inner.get(key) if isinstance(inner, dict) else None
    return value if isinstance(value, str) and value in known else "other"
