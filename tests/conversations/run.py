"""`make conversations`: turns, barge-in and backends that fail, measured.

    python -m tests.conversations.run [--only NAME…] [--quick]

Writes build/conversations/report.json with an entry for each target, and from it the page
docs/conversations. With `--only` or `--quick` (small numbers: does it work?) it writes partial.json
and no page. Ends with status 1 when a target is missed, 2 for a name that there is not.
"""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from tests.conversations import (
    append_latency,
    backend_faults,
    barge_in,
    capacity,
    own_echo,
    page,
    pauses,
    position,
    scripted,
)
from tests.conversations.effort import FULL, QUICK, Effort
from tests.conversations.service import DIRECTORY
from tests.figures.measurement import Measurement
from tests.figures.run import Outcome, UnknownName, conclude, make, select, tell
from tests.lab.node import REPOSITORY
from tests.lab.program import stop_listed

WITH_EFFORT = (scripted, barge_in, position, append_latency, backend_faults, capacity)
AS_THEY_ARE = (pauses, own_echo)
DOCUMENTS = REPOSITORY / "docs" / "conversations"


def catalogue(effort: Effort) -> list[Measurement]:
    return [
        *(each for module in WITH_EFFORT for each in module.measurements(effort)),
        *(each for module in AS_THEY_ARE for each in module.measurements()),
    ]


def main(argv: Sequence[str]) -> int:
    arguments = _parse(argv)
    partial = bool(arguments.only or arguments.quick)
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    try:
        chosen = select(catalogue(QUICK if arguments.quick else FULL), arguments.only)
    except UnknownName as error:
        say.print(f"conversations: {error}", style="red", markup=False)
        return 2
    stop_listed(DIRECTORY)  # what an earlier run left behind
    outcomes = _make_all(say, chosen)
    path = DIRECTORY / ("partial.json" if partial else "report.json")
    command = (
        " ".join(["python -m tests.conversations.run", *argv]) if partial else "make conversations"
    )
    status = conclude(say, "Conversations", chosen, outcomes, path, command)
    if not partial:
        page.write(path, DOCUMENTS)
    return status


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.conversations.run", description=__doc__)
    parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args(argv)


def _make_all(say: Console, chosen: Sequence[Measurement]) -> dict[str, Outcome]:
    """One after another, with a line each."""
    outcomes: dict[str, Outcome] = {}
    for number, each in enumerate(chosen, 1):
        say.print(f"{each.name} ({number} of {len(chosen)}) …")
        outcomes[each.name] = make(each)
        tell(say, outcomes[each.name])
    return outcomes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
