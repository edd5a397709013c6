"""`make siege`: lay siege to a live relay in every way we know, and judge what came of it.

    python -m tests.siege.run [--only NAME …] [--quick]

Writes build/siege/report.json with an entry for each target, measured or not. With names only
those sieges are laid (`takeover` means all that begin so), and go to partial.json; `--quick` takes
fewer tries. Ends with status 1 when a target is missed, 2 for a name that there is not.
"""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from tests.figures.measurement import Measurement
from tests.figures.run import UnknownName, conclude, make_all, select
from tests.lab.node import REPOSITORY
from tests.siege import (
    daemon_killed,
    floods,
    full_table,
    hints,
    key_rotation,
    nexthops,
    odd_packets,
    program_replaced,
    spoofed_transceiver,
    takeover,
)

OUTPUT = REPOSITORY / "build" / "siege"
MODULES = (
    *(floods, spoofed_transceiver, odd_packets, takeover, program_replaced),
    *(nexthops, hints, daemon_killed, full_table, key_rotation),
)


def catalogue(quick: bool) -> list[Measurement]:
    return [each for module in MODULES for each in module.measurements(quick)]


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    try:
        chosen = select(catalogue(options.quick), options.only)
    except UnknownName as error:
        say.print(f"siege: {error}", style="red", markup=False)
        return 2
    outcomes = make_all(say, chosen)
    partial = bool(options.only or options.quick)
    path = OUTPUT / ("partial.json" if partial else "report.json")
    command = " ".join(["python -m tests.siege.run", *arguments]) if partial else "make siege"
    return conclude(say, "A live relay under siege", chosen, outcomes, path, command)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Lay siege to a live relay")
    parser.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="NAME", help="these alone"
    )
    parser.add_argument("--quick", action="store_true", help="fewer tries")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
