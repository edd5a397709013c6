"""Tables, values and times as the pages of benches show them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def results(rows: Iterable[Mapping[str, Any]]) -> str:
    """The table of a report's results."""
    shown = (
        (
            row["name"],
            value(row["value"], row["unit"]),
            row["target"],
            "" if row["ok"] else "**missed**",
        )
        for row in rows
    )
    return table(("figure", "value", "target", ""), shown)


def failed(measurements: Mapping[str, Any]) -> str:
    """A list of the measurements that did not come about; empty if all did."""
    lines = [f"- `{name}`: {m['error']}" for name, m in measurements.items() if m["error"]]
    return "\n".join(["Not measured:", "", *lines, ""]) if lines else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def value(found: Any, unit: str) -> str:
    if found is None:
        return "not measured"
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, str):
        return f"{found} {unit}".strip()
    text = f"{found:,.3g}" if isinstance(found, float) and abs(found) < 1000 else f"{found:,.0f}"
    return f"{text} {unit}".strip()


def duration(ns: float) -> str:
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= unit:
            return f"{ns / unit:.3g} {name}"
    return f"{ns:.3g} ns"
