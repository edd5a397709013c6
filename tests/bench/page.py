"""docs/bench from a report: the page and its plots. No figure in them is typed by hand.

python -m tests.bench.page [REPORT [DIRECTORY]]
"""

import json
import statistics
import string
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.bench import histogram, markdown, svg
from tests.bench.bpf import HERE
from tests.lab.node import REPOSITORY

_PERCENTILES = (10, 25, 50, 75, 90, 95, 99, 99.5, 99.9)
_NAMES = {
    "nat_100": "nftables NAT, 100 flows",
    "nat_10k": "nftables NAT, 10,000 flows",
}


def write(report: Path, directory: Path) -> None:
    """README.md and the plots of a whole report (JSON)."""
    content = json.loads(report.read_text())
    directory.mkdir(parents=True, exist_ok=True)
    detail = {name: made["detail"] for name, made in content["measurements"].items()}
    plots = {
        "rate_by_flows.svg": rate_by_flows(detail.get("flows", {})),
        "latency.svg": latency(detail.get("latency", {})),
        "cost.svg": cost(detail.get("peers", {})),
    }
    for name, text in plots.items():
        if text:
            (directory / name).write_text(text)
    template = string.Template((HERE / "page.md").read_text())
    (directory / "README.md").write_text(template.substitute(fields(content, detail)))


def fields(content: Mapping[str, Any], detail: Mapping[str, Any]) -> dict[str, str]:
    """What stands in the template's places."""
    machine, versions = content["machine"], content["versions"]
    return {
        "machine": f"{machine['cpu']}, {machine['cores']} cores, kernel {machine['kernel']}",
        "version": versions["ferryline"],
        "targets": markdown.results(content["results"]),
        "direct_ns": f"{detail.get('peers', {}).get('direct_ns', 0):.0f}",
        "packages": detail.get("peers", {}).get("packages", ""),
        "ways": ways(detail.get("ways", {})),
        "peers": peers(detail.get("peers", {})),
        "costs": costs(detail.get("program", {})),
        "failed": markdown.failed(content["measurements"]),
    }


def ways(detail: Mapping[str, Any]) -> str:
    rows = (
        (
            name,
            f"{way['rate'] / 1e6:.2f}",
            f"{max(way['reference']) / 1e6:.2f}",
            f"{way['ratio']:.2f}",
            _spread(way),
        )
        for name, way in detail.get("ways", {}).items()
    )
    return markdown.table(("way", "Mpps", "bare redirect", "ratio", "pairs, least to most"), rows)


def _spread(way: Mapping[str, Any]) -> str:
    ratios = [a / b for a, b in zip(way["subject"], way["reference"], strict=True)]
    return f"{min(ratios):.2f}-{max(ratios):.2f}"


def peers(detail: Mapping[str, Any]) -> str:
    head = (
        "relay",
        "flows",
        "packets/s",
        "Ferryline is",
        "CPU per packet",
        "p50 / p99 / p99.9 at 50 %",
    )
    return markdown.table(head, (_peer(key, row) for key, row in detail.get("peers", {}).items()))


def _peer(key: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    if "not_run" in row:
        return _NAMES.get(key, key), "", f"not run: {row['not_run']}", "", "", ""
    half = next(each["ns"] for each in row["latency"] if each["load"] == 50)
    return (
        _NAMES.get(key, row["name"]),
        f"{row['flows']:,}",
        f"{row['rate']:,.0f}",
        f"{row['ratio']:.1f} x" if "ratio" in row else "",
        f"{row['cpu_ns']:,.0f} ns",
        " / ".join(markdown.duration(half[p]) for p in ("p50", "p99", "p99.9")),
    )


def costs(detail: Mapping[str, Any]) -> str:
    rows = (
        (
            f"{cost['flows']:,}",
            f"{cost['floor']:.0f}",
            f"{cost['lookup_over_floor']:.0f}",
            f"{cost['hit_over_floor']:.0f}",
            f"{cost['bracket'][0]:.0f}-{cost['bracket'][1]:.0f}",
        )
        for cost in detail.get("costs", ())
    )
    return markdown.table(("flows", "floor, ns", "look-up, ns", "hit, ns", "bracket, ns"), rows)


def rate_by_flows(detail: Mapping[str, Any]) -> str:
    found = detail.get("rates_by_flows")
    if not found:
        return ""
    series = {
        {"SPP": "Ferryline, SPP", "bare": "bare redirect"}[name]: [
            (float(size), statistics.median(rates) / 1e6)
            for size, rates in sorted(_by_number(sizes))
        ]
        for name, sizes in found.items()
    }
    sizes = [size for size, _ in next(iter(series.values()))]
    ticks = [(size, _count(size)) for size in sizes]
    x = svg.Axis("flows, touched out of order", 1.0, max(sizes), ticks, log=True)
    top = max(rate for points in series.values() for _, rate in points)
    y = svg.plain_axis("million packets a second", top, lambda value: f"{value:g}")
    return svg.lines("Lossless rate of one core by number of flows", x, y, series)


def latency(detail: Mapping[str, Any]) -> str:
    found = detail.get("latency")
    if not found:
        return ""
    names = {"SPP": "Ferryline", "bare": "bare redirect"}
    series = {
        f"{names[name]}, {load} %": [
            (_nines(percent), histogram.percentile(at["histogram"], percent))
            for percent in _PERCENTILES
        ]
        for load in ("50", "90")
        for name in ("SPP", "bare")
        for at in (found[name][load],)
    }
    ticks = [(_nines(p), f"{p:g}") for p in (10, 50, 90, 99, 99.9)]
    x = svg.Axis("percentile", _nines(10), _nines(99.9), ticks, log=True)
    delays = [delay for points in series.values() for _, delay in points]
    y = svg.log_axis("from generator to counter", min(delays), max(delays), markdown.duration)
    return svg.lines("Delay at a share of the lossless rate", x, y, series)


def cost(detail: Mapping[str, Any]) -> str:
    found = detail.get("peers", {})
    rows = [
        (_NAMES.get(key, row["name"]), row["cpu_ns"], f"{row['cpu_ns']:,.0f} ns")
        for key, row in found.items()
        if "cpu_ns" in row and row["cpu_ns"] > 0
    ]
    if not rows:
        return ""
    rows[1:] = sorted(rows[1:], key=lambda row: row[1])
    values = [value for _, value, _ in rows]
    x = svg.log_axis(
        "CPU time per packet (logarithmic)", min(values), max(values), markdown.duration
    )
    return svg.bars("CPU time per packet, kernel and process together", x, rows)


def _nines(percent: float) -> float:
    """So that 90, 99 and 99.9 are equally far apart on a logarithmic axis."""
    return 1 / (1 - percent / 100)


def _by_number(sizes: Mapping[str, Any]) -> Iterable[tuple[int, Any]]:
    return ((int(size), rates) for size, rates in sizes.items())


def _count(size: float) -> str:
    for unit, name in ((1 << 20, "M"), (1 << 10, "k")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g}"


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:3]]
    defaults = [REPOSITORY / "build/bench/report.json", REPOSITORY / "docs/bench"]
    write(*given, *defaults[len(given) :])
