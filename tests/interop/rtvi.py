"""What a Pipecat client makes of its channel: its own parser and callbacks are the judge."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.interop.judge import Seen

_TOLD = (  # by callbacks of the client, each at least once
    *("connected", "bot-connected", "bot-ready", "user-started-speaking", "user-stopped-speaking"),
    *("bot-started-speaking", "bot-stopped-speaking", "bot-llm-started", "bot-llm-stopped"),
    *("bot-llm-text", "bot-output"),
)
NEWER = {"bot-interrupted"}  # which this version of the client passes over


def fault(seen: Seen, report: Mapping[str, Any]) -> str | None:
    """Every message is one that the client knows, reached its callback, and it reports no error."""
    own = report["own"]
    if own["errors"]:
        return f"the client reports {own['errors'][0]}"
    if lacking := [name for name in _TOLD if not own["heard"].get(name)]:
        return f"never told: {', '.join(lacking)}"
    if not own["transcripts"]:
        return "no transcript of what was said"
    messages = [json.loads(text) for text in seen.messages]
    labels = {message.get("label") for message in messages}
    if labels != {"rtvi-ai"}:
        return f"labels {labels}"
    kinds = Counter(message["type"] for message in messages)
    if unknown := kinds.keys() - set(own["known"]) - NEWER:
        return f"unknown to the client: {', '.join(sorted(unknown))}"
    if kinds["bot-interrupted"] < len(seen.cuts):
        return f"{kinds['bot-interrupted']} of {len(seen.cuts)} cuts told"
    return None
