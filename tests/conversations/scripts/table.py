"""The scripted conversations: scripts, settings and seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tests.conversations.scripts import interruptions, replies, sessions, turns, upstream
from tests.conversations.talk import SERVER_VAD, Script

Backend = Literal["parrot", "echo", "realtime"]

SEMANTIC = {"type": "semantic_vad", "eagerness": "high"}
SEMANTIC_LOW = {"type": "semantic_vad", "eagerness": "low"}
QUICK_VAD = {"type": "server_vad", "silence_duration_ms": 400}
SESSION_S, WARNING_S = 6.0, 3.0  # of a session whose end is in the script


@dataclass(frozen=True)
class Plan:
    """One conversation. `think_ms` of the parrot; `length_s` of the session, None = long."""

    script: Script
    backend: Backend = "parrot"
    beta: bool = False
    detection: Mapping[str, Any] | None = None  # as the transceiver has it, without a wish
    think_ms: int = 0
    length_s: float | None = None
    dies_after_s: float | None = None  # of its first reply: the server behind `realtime`
    seed: int = 0

    @property
    def name(self) -> str:
        script = self.script.__module__.rpartition(".")[2]
        found = self.detection or SERVER_VAD
        setting = found.get("eagerness") or found.get("silence_duration_ms") or "default"
        dialect = "beta" if self.beta else "ga"
        return f"{self.backend} {script}.{self.script.__name__} {dialect} {setting} {self.seed}"


def plans() -> list[Plan]:
    """All hundred, the more telling ones spread over the list."""
    return [
        *_each(turns.one, detections=(None, SEMANTIC, QUICK_VAD, SEMANTIC_LOW), seeds=2),
        *_each(turns.one, beta=True, seeds=2),
        *_each(turns.two, detections=(None, SEMANTIC)),
        *_each(turns.two, beta=True),
        *_each(turns.nobody_speaks),
        *_each(turns.short_pause, detections=(None, SEMANTIC), seeds=2),
        *_each(turns.resumed, detections=(None, QUICK_VAD), think_ms=800, seeds=3),
        *_each(turns.no_response, detections=(None, SEMANTIC)),
        *_each(turns.push_to_talk, seeds=2),
        *_each(turns.button_for_nothing),
        *_each(turns.asks_for_words),
        *_each(turns.nobody_answers),
        *_each(replies.to_text),
        *_each(replies.to_text, beta=True),
        *_each(replies.text_session),
        *_each(replies.second_create, think_ms=600, seeds=2),
        *_each(replies.second_create, think_ms=600, beta=True),
        *_each(replies.cancelled, think_ms=600, seeds=2),
        *_each(replies.nothing_to_cancel),
        *_each(replies.stop_button, seeds=3),
        *_each(replies.tools),
        *_each(interruptions.at_its_first_packet, seeds=4),
        *_each(interruptions.in_the_middle, detections=(None, SEMANTIC, QUICK_VAD), seeds=3),
        *_each(interruptions.in_the_middle, beta=True),
        *_each(interruptions.in_its_last_moment, seeds=4),
        *_each(interruptions.after_its_end, seeds=2),
        *_each(interruptions.again_and_again, seeds=2),
        *_each(interruptions.not_allowed, detections=(None, SEMANTIC), seeds=2),
        *_each(interruptions.by_truncation, seeds=2),
        *_each(interruptions.by_wrong_truncation),
        *_each(sessions.changed_midway, seeds=2),
        *_each(sessions.agents_sdk, seeds=3),
        *_each(sessions.items),
        *_each(sessions.nonsense),
        *_each(sessions.its_end, length_s=SESSION_S),
        *_each(sessions.its_end, backend="echo", length_s=SESSION_S),
        *_each(sessions.updates_only, backend="echo"),
        *_each(sessions.opened, backend="echo", beta=True),
        *_each(upstream.turn, backend="realtime", seeds=2),
        *_each(upstream.turn, backend="realtime", beta=True),
        *_each(upstream.turns, backend="realtime"),
        *_each(upstream.written, backend="realtime"),
        *_each(upstream.tool, backend="realtime"),
        *_each(upstream.interrupted, backend="realtime", seeds=2),
        *_each(upstream.transcribed, backend="realtime"),
        *_each(upstream.lost, backend="realtime", dies_after_s=0.5),
        *_each(upstream.interrupted, backend="realtime", beta=True),
        *_each(upstream.cancelled, backend="realtime"),
        *_each(upstream.pushed, backend="realtime"),
        *_each(upstream.refusals, backend="realtime"),
        *_each(upstream.kept, backend="realtime"),
        *_each(upstream.overwritten, backend="realtime"),
    ]


def _each(
    script: Script,
    *,
    detections: Sequence[Mapping[str, Any] | None] = (None,),
    seeds: int = 1,
    **fields: Any,
) -> list[Plan]:
    base = Plan(script, **fields)
    return [
        replace(base, detection=detection, seed=seed)
        for detection in detections
        for seed in range(seeds)
    ]
