"""One `make` target that measures: its measurements, its report, its page.

    python -m <module> [--only NAME…] [--quick]

Writes report.json into the suite's directory with an entry for each target, and from it the page.
With `--only` or `--quick` (small numbers: does it work?) it writes partial.json and no page. Ends
with status 1 when a target is missed, 2 for a name that there is not.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tests.figures.measurement import Measurement
from tests.figures.run import Outcome, UnknownName, conclude, make, select, tell
from tests.lab.program import stop_listed


@dataclass(frozen=True)
class Suite:
    """`catalogue` is given whether small numbers do; `page` the report; `unavailable` tells why
    nothing can be measured here, or None."""

    target: str  # of make
    title: str
    module: str
    directory: Path
    catalogue: Callable[[bool], list[Measurement]]
    page: Callable[[Path], None]
    unavailable: Callable[[], str | None] = lambda: None

    def main(self, argv: Sequence[str]) -> int:
        """Measure; the exit status."""
        arguments = self._parse(argv)
        partial = bool(arguments.only or arguments.quick)
        say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
        try:
            chosen = select(self.catalogue(arguments.quick), arguments.only)
        except UnknownName as error:
            say.print(f"{self.target}: {error}", style="red", markup=False)
            return 2
        stop_listed(self.directory)  # what an earlier run left behind
        outcomes = self._make_all(say, chosen)
        path = self.directory / ("partial.json" if partial else "report.json")
        whole = f"make {self.target}"
        command = " ".join([f"python -m {self.module}", *argv]) if partial else whole
        status = conclude(say, self.title, chosen, outcomes, path, command)
        if not partial:
            self.page(path)
        return status

    def _parse(self, argv: Sequence[str]) -> argparse.Namespace:
        parser = argparse.ArgumentParser(prog=self.module)
        parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME")
        parser.add_argument("--quick", action="store_true", help="small numbers: does it work?")
        return parser.parse_args(argv)

    def _make_all(self, say: Console, chosen: Sequence[Measurement]) -> dict[str, Outcome]:
        """One after another; the long ones have lines of their own between name and outcome."""
        refused = self.unavailable()
        outcomes: dict[str, Outcome] = {}
        for number, each in enumerate(chosen, 1):
            say.print(f"{each.name} ({number} of {len(chosen)}) …")
            outcomes[each.name] = Outcome(0.0, refused) if refused else make(each)
            tell(say, outcomes[each.name])
        return outcomes
