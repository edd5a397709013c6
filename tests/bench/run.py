"""`make bench`: how fast the relay is, on one rig with what it is compared with.

    python -m tests.bench.run [--only NAME…] [--quick]

Writes build/bench/report.json with an entry for each target, and from it docs/bench. With `--only`
or `--quick` (one pair instead of seven) it writes partial.json and no page. Ends with status 1 when
a target is missed, 2 for a name that there is not.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tests.bench import page
from tests.bench.effort import FULL, QUICK, Effort
from tests.bench.measured import calls, flows, latency, peers, program, ways
from tests.bench.rig import DIRECTORY
from tests.figures.measurement import Measurement
from tests.figures.run import Outcome, UnknownName, conclude, make, select, tell
from tests.lab import namespace
from tests.lab.node import REPOSITORY

MODULES = (program, ways, flows, latency, peers, calls)
DOCUMENTS = REPOSITORY / "docs" / "bench"


def catalogue(effort: Effort) -> list[Measurement]:
    return [each for module in MODULES for each in module.measurements(effort)]


def main(argv: Sequence[str]) -> int:
    arguments = _parse(argv)
    partial = bool(arguments.only or arguments.quick)
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    try:
        chosen = select(catalogue(QUICK if arguments.quick else FULL), arguments.only)
    except UnknownName as error:
        say.print(f"bench: {error}", style="red", markup=False)
        return 2
    outcomes = _make_all(say, chosen)
    path = DIRECTORY / ("partial.json" if partial else "report.json")
    command = " ".join(["python -m tests.bench.run", *argv]) if partial else "make bench"
    title = "Relay, on one rig with what it is compared with"
    status = conclude(say, title, chosen, outcomes, path, command)
    if not partial:
        page.write(path, DOCUMENTS)
    return status


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.bench.run", description=__doc__)
    parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args(argv)


def _make_all(say: Console, chosen: Sequence[Measurement]) -> dict[str, Outcome]:
    refused = namespace.unavailable()
    outcomes: dict[str, Outcome] = {}
    columns: tuple[Any, ...] = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=say, transient=True) as progress:
        for number, each in enumerate(chosen, 1):
            task = progress.add_task(f"{each.name} ({number} of {len(chosen)})", total=None)
            made = Outcome(0.0, refused) if refused else make(each)
            outcomes[each.name] = made
            progress.remove_task(task)
            progress.console.print(each.name, end=" ")
            tell(progress.console, made)
    return outcomes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
