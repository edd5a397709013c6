"""`make figures`: measure what the service promises, on the XDP datapath, and judge it.

    python -m tests.figures.run [NAME…]

Writes build/figures/report.json with an entry for each target, measured or not. With names only
those measurements are made (`nat_moves` means all that begin so), and go to partial.json. Ends with
status 1 when a target is missed, 2 for a name that there is not.
"""

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from tests import report
from tests.figures import (
    browser_call,
    first_check,
    handshake_loss,
    hostile,
    ice_restart,
    kernel_share,
    nat_moves,
    relay_killed,
    thirty_calls,
    two_interfaces,
)
from tests.figures.measurement import Measurement
from tests.lab import namespace
from tests.lab.node import REPOSITORY
from tests.report import Target, Value

OUTPUT = REPOSITORY / "build" / "figures"
MODULES = (
    *(first_check, browser_call, kernel_share, nat_moves, two_interfaces, ice_restart),
    *(handshake_loss, relay_killed, thirty_calls, hostile),
)


@dataclass
class Outcome:
    """What became of one measurement."""

    seconds: float
    error: str | None = None
    values: dict[str, Value] = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)


class UnknownName(ValueError):
    """No measurement has that name."""


def catalogue() -> list[Measurement]:
    return [each for module in MODULES for each in module.measurements()]


def select(measurements: Sequence[Measurement], names: Sequence[str]) -> list[Measurement]:
    """Those whose name begins with one of `names`; all for no names. Raises `UnknownName`."""
    for name in names:
        if not any(each.name.startswith(name) for each in measurements):
            known = ", ".join(each.name for each in measurements)
            raise UnknownName(f"no measurement {name!r}; there are {known}")
    return [each for each in measurements if not names or each.name.startswith(tuple(names))]


def make(measurement: Measurement) -> Outcome:
    """Whatever goes wrong is the outcome of this one, and the next is made."""
    began = time.monotonic()
    try:
        found = measurement.measure()
    except Exception as error:  # it may come from anything under the sun that takes part
        return Outcome(_since(began), f"{type(error).__name__}: {error}")
    return Outcome(_since(began), None, found.values, found.detail)


def _since(began: float) -> float:
    return round(time.monotonic() - began, 1)


def targets(measurements: Iterable[Measurement]) -> list[Target]:
    return [target for each in measurements for target in each.targets]


def main(names: Sequence[str]) -> int:
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    try:
        chosen = select(catalogue(), names)
    except UnknownName as error:
        say.print(f"figures: {error}", style="red", markup=False)
        return 2
    outcomes = make_all(say, chosen)
    path = OUTPUT / ("partial.json" if names else "report.json")
    command = " ".join(["python -m tests.figures.run", *names]) if names else "make figures"
    return conclude(say, "Figures on the XDP datapath", chosen, outcomes, path, command)


def make_all(say: Console, chosen: Sequence[Measurement]) -> dict[str, Outcome]:
    """One after another, each with a line for people."""
    refused = namespace.unavailable()
    outcomes: dict[str, Outcome] = {}
    for each in chosen:
        say.print(f"{each.name} …", end=" ")
        outcomes[each.name] = Outcome(0.0, refused) if refused else make(each)
        tell(say, outcomes[each.name])
    return outcomes


def conclude(
    say: Console,
    title: str,
    chosen: Sequence[Measurement],
    outcomes: Mapping[str, Outcome],
    path: Path,
    command: str,
) -> int:
    """Judge, write the report to `path`, print the table; the exit status. `command` repeats it."""
    values = {name: value for made in outcomes.values() for name, value in made.values.items()}
    results = report.judge(targets(chosen), values)
    measurements = {name: asdict(made) for name, made in outcomes.items()}
    report.write(path, command, results, measurements=measurements)
    say.print(report.table(title, results))
    ok = all(result.ok for result in results)
    say.print(f"{'all good' if ok else 'FAILED'}; {path.relative_to(REPOSITORY)}")
    return 0 if ok else 1


def tell(say: Console, made: Outcome) -> None:
    """One line for people, after its name."""
    if made.error:
        first, *more = made.error.splitlines()
        brief = " … ".join([first, *more[-1:]])  # as a rule the end of a log; the report has all
        say.print(f"failed after {made.seconds:.0f} s: {brief}", style="red", markup=False)
        return
    values = ", ".join(f"{name} {_short(value)}" for name, value in made.values.items())
    say.print(f"{made.seconds:.0f} s: {values}", markup=False)


def _short(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
