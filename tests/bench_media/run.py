"""`make bench-media`: what the media path carries, beside stock aiortc and Pion.

    python -m tests.bench_media.run [--only NAME…] [--quick]

Writes build/bench-media/report.json with an entry for each target, and from it docs/bench-media.
With `--only` or `--quick` (small numbers: does it work?) it writes partial.json and no page. Ends
with status 1 when a target is missed, 2 for a name that there is not.
"""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from tests.audio import long_talk, loss_and_jitter, lost_packet, resampling, wire_to_wire
from tests.bench_media import abandoned, hijack, page, reload
from tests.bench_media.effort import FULL, QUICK, Effort
from tests.bench_media.measured import capacity, memory, setups
from tests.bench_media.rig import DIRECTORY
from tests.figures.measurement import Measurement
from tests.figures.run import Outcome, UnknownName, conclude, make, select, tell
from tests.lab import namespace
from tests.lab.node import REPOSITORY

WITH_EFFORT = (setups, memory, capacity)
AS_THEY_ARE = (
    *(hijack, reload, abandoned),
    *(lost_packet, loss_and_jitter, wire_to_wire, long_talk, resampling),
)
DOCUMENTS = REPOSITORY / "docs" / "bench-media"


def catalogue(effort: Effort) -> list[Measurement]:
    return [
        *(each for module in AS_THEY_ARE for each in module.measurements()),
        *(each for module in WITH_EFFORT for each in module.measurements(effort)),
    ]


def main(argv: Sequence[str]) -> int:
    arguments = _parse(argv)
    partial = bool(arguments.only or arguments.quick)
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    try:
        chosen = select(catalogue(QUICK if arguments.quick else FULL), arguments.only)
    except UnknownName as error:
        say.print(f"bench-media: {error}", style="red", markup=False)
        return 2
    outcomes = _make_all(say, chosen)
    path = DIRECTORY / ("partial.json" if partial else "report.json")
    command = (
        " ".join(["python -m tests.bench_media.run", *argv]) if partial else "make bench-media"
    )
    status = conclude(say, "Media path", chosen, outcomes, path, command)
    if not partial:
        page.write(path, DOCUMENTS)
    return status


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.bench_media.run", description=__doc__)
    parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args(argv)


def _make_all(say: Console, chosen: Sequence[Measurement]) -> dict[str, Outcome]:
    """One after another; the long ones have lines of their own between name and outcome."""
    refused = namespace.unavailable()
    outcomes: dict[str, Outcome] = {}
    for number, each in enumerate(chosen, 1):
        say.print(f"{each.name} ({number} of {len(chosen)}) …")
        outcomes[each.name] = Outcome(0.0, refused) if refused else make(each)
        tell(say, outcomes[each.name])
    return outcomes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
