"""docs/bench-media from a report: the page and its plots. No figure in them is typed by hand.

python -m tests.bench_media.page [REPORT [DIRECTORY]]
"""

import json
import statistics
import string
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.bench import markdown, svg
from tests.lab.node import REPOSITORY

HERE = Path(__file__).parent
_SHORT = {
    "echo": "echo",
    "mirror": "mirror",
    "stock": "aiortc",
    "stock_ours": "aiortc, our codec",
    "pion": "Pion",
}
_ORDER = tuple(_SHORT)
_LEAST_MS = 0.1  # of lateness that the plot can tell from none
_LOST_MS = 1000.0  # where it shows a p99 that never came back


def write(report: Path, directory: Path) -> None:
    """README.md and the plots of a whole report (JSON)."""
    content = json.loads(report.read_text())
    directory.mkdir(parents=True, exist_ok=True)
    detail = {name: made["detail"] for name, made in content["measurements"].items()}
    subjects = detail.get("capacity", {}).get("subjects", {})
    plots = {
        "lateness.svg": lateness(subjects),
        "cpu.svg": cpu(subjects),
        "memory.svg": memory(detail.get("memory", {}).get("bytes", {})),
    }
    for name, text in plots.items():
        if text:
            (directory / name).write_text(text)
    template = string.Template((HERE / "page.md").read_text())
    (directory / "README.md").write_text(template.substitute(fields(content, detail)))


def fields(content: Mapping[str, Any], detail: Mapping[str, Any]) -> dict[str, str]:
    """What stands in the template's places."""
    machine, versions = content["machine"], content["versions"]
    found = detail.get("capacity", {})
    return {
        "machine": f"{machine['cpu']}, {machine['cores']} cores, kernel {machine['kernel']}",
        "version": versions["ferryline"],
        "aiortc": versions.get("aiortc", "none"),
        "packages": found.get("packages", ""),
        "targets": markdown.results(content["results"]),
        "failed": markdown.failed(content["measurements"]),
        "capacity": capacity(found.get("subjects", {})),
        "not_measured": not_measured(found.get("not_measured", {})),
        "fixed_calls": str(found.get("fixed_calls", "")),
        "fixed": fixed(found.get("subjects", {})),
        "memory": memories(detail.get("memory", {}).get("bytes", {})),
        "set_ups": set_ups(detail.get("set_ups", {}).get("set_ups", {})),
        "at_once": at_once(detail.get("at_once", {})),
    }


def capacity(subjects: Mapping[str, Any]) -> str:
    rows = (
        (
            subject["name"],
            subject["codec"],
            subject["srtp"],
            f"{statistics.median(subject['calls']):g}",
            f"{min(subject['calls'])}-{max(subject['calls'])}",
            subject["limit"] or "the server",
        )
        for subject in _in_order(subjects)
    )
    head = ("server", "encoder", "SRTP", "calls per core", "rounds, least to most", "limit set by")
    return markdown.table(head, rows)


def not_measured(errors: Mapping[str, str]) -> str:
    return "\n".join(f"- {_SHORT[key]}: not measured, {error}" for key, error in errors.items())


def fixed(subjects: Mapping[str, Any]) -> str:
    rows = (
        (
            subject["name"],
            f"{subject['fixed']['cpu_per_packet_us']:,.0f} µs",
            f"{subject['fixed']['cpu_per_call'] * 100:.2g} %",
            f"{subject['fixed']['trip_p50_ms']:.2f} / {subject['fixed']['trip_p99_ms']:.2f} ms",
            f"{subject['fixed']['late_p99_ms']:.2f} ms",
            f"{subject['fixed']['octets']:.0f}",
            f"{subject['fixed']['fec']:.0%}",
        )
        for subject in _in_order(subjects)
    )
    head = (
        *("server", "CPU per packet", "of a core per call", "round trip p50 / p99"),
        *("lateness p99", "bytes of payload", "with FEC"),
    )
    return markdown.table(head, rows)


def memories(found: Mapping[str, Any]) -> str:
    rows = (
        (
            _SHORT[key],
            f"{_median(found[key], 'anonymous') / 1024:,.0f} KiB",
            f"{_median(found[key], 'rss') / 1024:,.0f} KiB",
            f"{_median(found[key], 'process') / 2**20:,.0f} MiB",
        )
        for key in _ORDER
        if key in found
    )
    return markdown.table(
        ("server", "a call, anonymous", "a call, resident", "process without calls"), rows
    )


def set_ups(found: Mapping[str, Any]) -> str:
    rows = (
        (
            _SHORT[key],
            f"{_median(found[key], 'rate'):,.0f}",
            f"{_median(found[key], 'cpu_ms'):.2f} ms",
            f"{_median(found[key], 'p50_ms'):.1f} ms",
        )
        for key in _ORDER
        if key in found
    )
    head = ("server", "set-ups a second", "CPU time of one", "p50, 8 under way")
    return markdown.table(head, rows)


def at_once(found: Mapping[str, Any]) -> str:
    """One sentence."""
    times = found.get("setup_ms")
    if not times:
        return "Not measured."
    return (
        f"Of {len(times) + len(found['failed'])} callers {len(times)} were connected, half of them "
        f"after {statistics.median(times) / 1e3:.2f} s, the last after {times[-1] / 1e3:.2f} s."
    )


def lateness(subjects: Mapping[str, Any]) -> str:
    if not subjects:
        return ""
    series = {_SHORT[key]: lateness_points(subjects[key]) for key in _ORDER if key in subjects}
    counts = [calls for line in series.values() for calls, _ in line]
    x = svg.log_axis("calls on one core", min(counts), max(counts), lambda value: f"{value:g}")
    y = svg.log_axis("lateness p99", _LEAST_MS, _LOST_MS, lambda ms: markdown.duration(ms * 1e6))
    return svg.lines("Lateness by number of calls", x, y, series)


def lateness_points(subject: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The median of the steps with as many calls."""
    by_calls: dict[int, list[float]] = {}
    for step in (subject["fixed"], *subject["steps"]):
        late = _LOST_MS if step["loss"] > 0.01 else max(_LEAST_MS, step["late_p99_ms"])
        by_calls.setdefault(step["calls"], []).append(late)
    return [(calls, statistics.median(late)) for calls, late in sorted(by_calls.items())]


def cpu(subjects: Mapping[str, Any]) -> str:
    costs = [(s["name"], s["fixed"]["cpu_per_packet_us"]) for s in _in_order(subjects)]
    label = "CPU time per packet that came back (logarithmic)"
    return _bars("CPU time per packet", label, costs, 1e3)


def memory(found: Mapping[str, Any]) -> str:
    sizes = [
        (_SHORT[key], max(1.0, _median(found[key], "anonymous") / 1024))
        for key in _ORDER
        if key in found
    ]
    if not sizes:
        return ""
    x = svg.plain_axis(
        "KiB of anonymous memory a call", max(s for _, s in sizes), lambda v: f"{v:g}"
    )
    return svg.bars("Memory of a call", x, [(name, size, f"{size:,.0f}") for name, size in sizes])


def _bars(title: str, label: str, rows: list[tuple[str, float]], to_ns: float) -> str:
    if not rows:
        return ""
    values = [value for _, value in rows]
    x = svg.log_axis(label, min(values), max(values), lambda v: markdown.duration(v * to_ns))
    shown = [(name, value, markdown.duration(value * to_ns)) for name, value in rows]
    return svg.bars(title, x, shown)


def _in_order(subjects: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (subjects[key] for key in _ORDER if key in subjects)


def _median(rows: Iterable[Mapping[str, float]], name: str) -> float:
    return statistics.median(row[name] for row in rows)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:3]]
    defaults = [REPOSITORY / "build/bench-media/report.json", REPOSITORY / "docs/bench-media"]
    write(*given, *defaults[len(given) :])
