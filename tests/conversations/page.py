"""docs/conversations from a report: the page and its plot. No figure in them is typed by hand.

python -m tests.conversations.page [REPORT [DIRECTORY]]
"""

import json
import string
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench import markdown, svg
from tests.lab.node import REPOSITORY

HERE = Path(__file__).parent
_BIN_MS = 10

Detail = Mapping[str, Any]


def write(report: Path, directory: Path) -> None:
    """README.md and the plot of a whole report (JSON)."""
    content = json.loads(report.read_text())
    directory.mkdir(parents=True, exist_ok=True)
    detail = {name: made["detail"] for name, made in content["measurements"].items()}
    took = detail.get("barge_in", {}).get("all_ms", [])
    if took:
        (directory / "barge_in.svg").write_text(histogram(took))
    template = string.Template((HERE / "page.md").read_text())
    (directory / "README.md").write_text(template.substitute(fields(content, detail)))


def fields(content: Mapping[str, Any], detail: Mapping[str, Detail]) -> dict[str, str]:
    """What stands in the template's places."""
    machine, versions = content["machine"], content["versions"]
    return {
        "machine": f"{machine['cpu']}, {machine['cores']} cores, kernel {machine['kernel']}",
        "version": versions["ferryline"],
        "targets": markdown.results(content["results"]),
        "failed": markdown.failed(content["measurements"]),
        "scripted": scripted(detail.get("scripted", {})),
        "barge_in": barge_in(detail.get("barge_in", {})),
        "position": position(detail.get("position", {})),
        "pauses": pauses(detail.get("pauses", {})),
        "own_echo": own_echo(detail.get("own_echo", {})),
        "append": append(detail.get("append_latency", {})),
        "faults": faults(detail.get("backend_faults", {})),
        "capacity": capacity(detail.get("parrot_capacity", {})),
    }


def scripted(found: Detail) -> str:
    if not found:
        return "Not measured."
    count, kinds = found["events"], len(found["kinds"])
    lines = [f"The clients were told {count:,} events of {kinds} kinds."]
    lines += [f"- {name}: {why}" for name, why in found["out_of_order"].items()]
    return "\n".join(lines)


def barge_in(found: Detail) -> str:
    if not found:
        return "Not measured."
    rows = [
        ("first word to silence", found["took_ms"]),
        ("first word to decision", found["decision_ms"]),
        ("decision to silence", found["flush_ms"]),
    ]
    return markdown.table(_SPREAD, [(name, *_spread(values)) for name, values in rows])


def position(found: Detail) -> str:
    if not found:
        return "Not measured."
    rows = [
        (_named(name), str(one["cut"]), *_spread(one["error_ms"])) for name, one in found.items()
    ]
    return markdown.table(("ear", "replies cut", *_SPREAD[1:]), rows)


def append(found: Detail) -> str:
    if not found:
        return "Not measured."
    row = ("packet in to append out", *_spread(found["took_ms"]))
    return markdown.table(_SPREAD, [row])


def faults(found: Detail) -> str:
    """What became of each fault, and how long each outage was felt."""
    if not found:
        return "Not measured."
    rows = [
        (
            name,
            found["lost"].get(name, "the call stayed"),
            found["untold"].get(name, "as they should be"),
            f"{found['memory_mb'].get(name, 0):+.1f} MB",
        )
        for name in found["faults"]
    ]
    backs = [f"{length} s: {took:.2f} s" for length, took in found["back_s"].items()]
    told = markdown.table(("the backend", "call", "errors told", "memory since the start"), rows)
    return f"{told}\n\nBack after the server is, by how long it was away: {', '.join(backs)}."


def capacity(found: Detail) -> str:
    if not found:
        return "Not measured."
    rows = [
        (
            vad,
            str(max((step["calls"] for step in steps if step["holds"]), default=0)),
            f"{steps[0]['load'] / steps[0]['calls'] * 100:.2g} %",
        )
        for vad, steps in found.items()
    ]
    return markdown.table(
        ("turn detector", "calls per core", "of a core per call, few calls"), rows
    )


def pauses(found: Detail) -> str:
    """By setting: what it takes for an end, and how long it waits for one."""
    if not found:
        return "Not measured."
    rows = [
        (
            name.replace("_", " "),
            f"{row['early_ends']:.0%}",
            f"{row['end_of_turn_ms']['p50']} / {row['end_of_turn_ms']['p95']} ms",
            str(row["answers_given_up"]),
            str(row["sound_into_resumed_speech"]),
        )
        for name, row in found["settings"].items()
    ]
    head = (
        *("setting", "pauses taken for the end", "end of turn p50 / p95"),
        *("answers given up unheard", "sound into resumed speech"),
    )
    return markdown.table(head, rows)


def own_echo(found: Detail) -> str:
    if not found:
        return "Not measured."
    late = found["talk_over_silenced_after_ms"]
    delays = found["delays_ms"]
    return (
        f"{found['turns']} turns with the agent's voice coming back, {min(delays)} to "
        f"{max(delays)} ms late. A person who talks over it silences it after "
        f"{late['p50']} ms (p50), {late['p95']} ms (p95)."
    )


def histogram(took_ms: Sequence[float]) -> str:
    """Interruptions by how long they took, in bins of 10 ms."""
    low = int(min(took_ms) // _BIN_MS)
    counts = [0] * (int(max(took_ms) // _BIN_MS) - low + 1)
    for each in took_ms:
        counts[int(each // _BIN_MS) - low] += 1
    rows = [
        (f"{(low + n) * _BIN_MS} to {(low + n + 1) * _BIN_MS} ms", float(count), str(count))
        for n, count in enumerate(counts)
    ]
    x = svg.plain_axis("interruptions", max(counts), lambda value: f"{value:g}")
    return svg.bars("From the first word to silence", x, rows)


_SPREAD = ("ms", "least", "p50", "p95", "most")


def _spread(values: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(f"{values[key]:.1f}" for key in ("min", "p50", "p95", "max"))


def _named(name: str) -> str:
    kind, _, depth = name.partition("_")
    if depth == "far":
        return "60 ms, told, far"
    return f"{depth} ms, {'told' if kind == 'told' else 'by default'}"


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:3]]
    defaults = [REPOSITORY / "build/conversations/report.json", REPOSITORY / "docs/conversations"]
    write(*given, *defaults[len(given) :])
