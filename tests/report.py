"""Figures against targets, and the report file that every `make` target with figures writes.

A report has one entry for each target it was asked for: a figure that nobody measured is a failed
entry, not a missing one.
"""

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

Value = float | str | bool | None
Relation = Literal["≥", "≤", ">", "<", "="]

_PACKAGES = ("aioice", "aiortc", "fastapi", "numpy", "opuslib-next", "pyroute2", "siphash24")


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure has to reach."""

    name: str
    relation: Relation
    bound: float | str | bool
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.relation} {_text(self.bound)}"

    def met(self, value: Value) -> bool:
        if self.relation == "=" or value is None:
            return value == self.bound
        if isinstance(value, str) or isinstance(self.bound, str):
            raise TypeError(f"{self.name}: {value!r} {self.relation} {self.bound!r}")
        match self.relation:
            case "≥":
                return value >= self.bound
            case "≤":
                return value <= self.bound
            case ">":
                return value > self.bound
            case "<":
                return value < self.bound


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    value: Value
    unit: str
    target: str
    ok: bool


def judge(targets: Iterable[Target], values: Mapping[str, Value]) -> list[Result]:
    """One result for each target. A value without a target is a `KeyError`: a misspelt name."""
    wanted = {target.name: target for target in targets}
    if unknown := values.keys() - wanted.keys():
        raise KeyError(f"no target named {', '.join(sorted(unknown))}")
    return [
        Result(name, values.get(name), target.unit, str(target), target.met(values.get(name)))
        for name, target in wanted.items()
    ]


def table(title: str, results: Iterable[Result]) -> Table:
    """For people: one row each."""
    rows = Table("figure", "value", "target", "", title=title, title_justify="left")
    for result in results:
        value = "not measured"
        if result.value is not None:
            value = f"{_text(result.value)} {result.unit}".strip()
        verdict = "[green]ok[/]" if result.ok else "[bold red]FAILED[/]"
        rows.add_row(result.name, value, result.target, verdict)
    return rows


def write(path: Path, command: str, results: Sequence[Result], **more: Any) -> None:
    """Write the report as JSON; `more` are further top-level entries."""
    report = {
        "command": command,
        "machine": machine(),
        "versions": versions(),
        **more,
        "results": [asdict(result) for result in results],
        "ok": all(result.ok for result in results),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def machine() -> dict[str, Any]:
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "root": os.geteuid() == 0,
    }


def versions() -> dict[str, str]:
    """Of what took part; `ferryline` is the commit, with a plus sign when files were changed."""
    packages = {name: metadata.version(name) for name in _PACKAGES if _installed(name)}
    revision = _first_line("git", "rev-parse", "--short", "HEAD") or "not committed"
    changed = "+" if _first_line("git", "status", "--porcelain") else ""
    return {"ferryline": revision + changed, "python": platform.python_version(), **packages}


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _first_line(*argv: str) -> str:
    try:
        done = subprocess.run(
            argv, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10, check=False
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.partition("\n")[0] if done.returncode == 0 else ""


def _text(value: float | str | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.5g}" if isinstance(value, float) else str(value)
