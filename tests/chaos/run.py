"""`make chaos`: every fault on live calls, each beside a control run, judged by what calls lose.

    python -m tests.chaos.run [--seed N] [NAME…]

Writes build/chaos/report.json with an entry for each target, and docs/chaos from it. With names
only those scenarios are played (`redis` means all that begin so), and go to partial.json. Order and
moments follow from the seed. Ends with status 1 when a target is missed, 2 for a name that there
is not.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from rich.console import Console
from rich.table import Table

from tests.chaos import (
    clock,
    hundred_thousand,
    links,
    nat,
    page,
    relays,
    signaling_down,
    storage,
    transceivers,
    two_relays,
)
from tests.chaos.engine import Cast, Theatre, ordered
from tests.chaos.scenario import Scenario
from tests.figures.measurement import Measurement
from tests.figures.run import Outcome, UnknownName, conclude, make_all, select
from tests.lab.node import REPOSITORY

OUTPUT = REPOSITORY / "build" / "chaos"
PREFIX = "ch-"  # of the namespaces
MODULES: tuple[ModuleType, ...] = (  # have `scenarios()`
    *(relays, two_relays, storage, nat, links, signaling_down, clock),
)
MEASURED: tuple[ModuleType, ...] = (  # more than live calls alone: have `measurements()`
    *(transceivers, nat, hundred_thousand),
)


def catalogue(seed: int, theatre: Theatre) -> list[Measurement]:
    scenarios: list[Scenario] = [each for module in MODULES for each in module.scenarios()]
    played = [theatre.measurement(each) for each in ordered(scenarios, seed)]
    measured = [each for module in MEASURED for each in module.measurements()]
    return [*played, *map(theatre.beside, measured)]


def table(outcomes: Mapping[str, Outcome]) -> Table:
    """What each fault did, as the difference from its control run."""
    rows = Table(
        "fault", *page.HEADS, title="Faults (gaps: p50, max over calls)", title_justify="left"
    )
    for name, made in outcomes.items():
        if difference := made.detail.get("difference"):
            rows.add_row(name, *page.cells(difference))
    return rows


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.chaos.run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args(argv)
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    with Theatre(Cast(PREFIX, arguments.seed)) as theatre:
        try:
            chosen = select(catalogue(arguments.seed, theatre), arguments.names)
        except UnknownName as error:
            say.print(f"chaos: {error}", style="red", markup=False)
            return 2
        outcomes = make_all(say, chosen)
    say.print(table(outcomes))
    path = OUTPUT / ("partial.json" if arguments.names else "report.json")
    command = " ".join(["python -m tests.chaos.run", *argv]) if argv else "make chaos"
    status = conclude(say, "Chaos", chosen, outcomes, path, command)
    if not arguments.names:
        page.write(path, REPOSITORY / "docs" / "chaos")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
