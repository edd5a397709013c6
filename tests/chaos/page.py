"""docs/chaos from a report. No figure in it is typed by hand.

python -m tests.chaos.page [REPORT [DIRECTORY]]
"""

import json
import string
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench import markdown
from tests.lab.node import REPOSITORY

HERE = Path(__file__).parent
HEADS = ("gap up, ms", "gap down, ms", "lost up", "lost down", "calls lost", "recovery, s")

Detail = Mapping[str, Any]


def write(report: Path, directory: Path) -> None:
    """README.md of a whole report (JSON)."""
    content = json.loads(report.read_text())
    directory.mkdir(parents=True, exist_ok=True)
    template = string.Template((HERE / "page.md").read_text())
    (directory / "README.md").write_text(template.substitute(fields(content)))


def fields(content: Mapping[str, Any]) -> dict[str, str]:
    """What stands in the template's places."""
    machine = content["machine"]
    made = content["measurements"]
    played = {name: one["detail"] for name, one in made.items() if "difference" in one["detail"]}
    return {
        "machine": f"{machine['cpu']}, {machine['cores']} cores, kernel {machine['kernel']}",
        "version": content["versions"]["ferryline"],
        "targets": markdown.results(content["results"]),
        "failed": markdown.failed(made),
        "faults": faults(played),
        "how": "\n\n".join(how(name, detail) for name, detail in sorted(played.items())),
    }


def faults(played: Mapping[str, Detail]) -> str:
    """A row for each: the difference, and in brackets the gaps of the control run."""
    rows = [
        (f"`{name}`", *cells(detail["difference"], detail["control"]))
        for name, detail in sorted(played.items())
    ]
    return markdown.table(("fault", *HEADS), rows)


def cells(difference: Mapping[str, float], control: Mapping[str, float] = {}) -> tuple[str, ...]:
    """A row of the table, without its name."""
    gaps = []
    for way in ("up", "down"):
        p50, most = f"gap_{way}_p50", f"gap_{way}_max"
        without = f" ({control[p50]:.0f} / {control[most]:.0f})" if control else ""
        gaps.append(f"{difference[p50]:.0f} / {difference[most]:.0f}{without}")
    counts = (f"{difference[name]:,}" for name in ("lost_up", "lost_down", "calls_lost"))
    return (*gaps, *counts, f"{difference['recovery']:.2f}")


def how(name: str, detail: Detail) -> str:
    """A paragraph: how the fault was made, and when what happened."""
    told = " ".join(detail["how"].split())
    moments = ", ".join(
        f"{what} {at:.2f} s" for what, at in detail["moments_s"].items() if what != "fault"
    )
    whole = detail["whole"]
    gaps = " and ".join(f"{whole[f'gap_{way}_max']:.0f} ms {way}" for way in ("up", "down"))
    return (
        f"**`{name}`** ({detail['stage']}). {told} Moments after the fault: {moments}. "
        f"Longest silence of all, from the fault on: {gaps}."
    )


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:3]]
    defaults = [REPOSITORY / "build/chaos/report.json", REPOSITORY / "docs/chaos"]
    write(*given, *defaults[len(given) :])
