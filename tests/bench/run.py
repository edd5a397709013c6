"""`make bench`: how fast the relay is, on one rig with what it is compared with.

    python -m tests.bench.run [--only NAME…] [--quick]

Writes build/bench/report.json with an entry for each target, and from it docs/bench. With `--only`
or `--quick` (one pair instead of seven) it writes partial.json and no page. Ends with status 1 when
a target is missed, 2 for a name that there is not.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tests import report
from tests.bench import page
from tests.bench.effort import FULL, QUICK, Effort
from tests.bench.measured import calls, flows, latency, peers, program, ways
from tests.bench.rig import DIRECTORY
from tests.figures.measurement import Measurement
from tests.figures.run import Outcome, UnknownName, make, select, targets
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
    values = {name: value for made in outcomes.values() for name, value in made.values.items()}
    results = report.judge(targets(chosen), values)
    path = DIRECTORY / ("partial.json" if partial else "report.json")
    command = " ".join(["python -m tests.bench.run", *argv]) if partial else "make bench"
    measurements = {name: asdict(made) for name, made in outcomes.items()}
    report.write(path, command, results, measurements=measurements)
    say.print(report.table("Relay, on one rig with what it is compared with", results))
    if not partial:
        page.write(path, DOCUMENTS)
    ok = all(result.ok for result in results)
    say.print(f"{'all good' if ok else 'FAILED'}; {path.relative_to(REPOSITORY)}")
    return 0 if ok else 1


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.bench.run", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
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
            _tell(progress.console, each.name, made)
    return outcomes


def _tell(say: Console, name: str, made: Outcome) -> None:
    if made.error:
        say.print(
            f"{name} failed after {made.seconds:.0f} s: {made.error}", style="red", markup=False
        )
        return
    values = ", ".join(f"{key} {value:.4g}" for key, value in made.values.items())
    say.print(f"{name} {made.seconds:.0f} s: {values}", markup=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
