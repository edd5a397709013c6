"""`make bench-signaling`: set-up time, offers a second, offers gone wrong; see `Suite`."""

import sys
from pathlib import Path

from tests.bench_signaling import abandoned, hostile_input, page, rates, setup_time
from tests.bench_signaling.effort import FULL, QUICK, Effort
from tests.bench_signaling.rig import DIRECTORY
from tests.figures.measurement import Measurement
from tests.figures.suite import Suite
from tests.lab import namespace
from tests.lab.node import REPOSITORY

MODULES = (setup_time, rates, abandoned, hostile_input)
DOCUMENTS = REPOSITORY / "docs" / "bench-signaling"


def catalogue(effort: Effort) -> list[Measurement]:
    return [each for module in MODULES for each in module.measurements(effort)]


def _write_page(report: Path) -> None:
    page.write(report, DOCUMENTS)


SUITE = Suite(
    target="bench-signaling",
    title="Signaling",
    module="tests.bench_signaling.run",
    directory=DIRECTORY,
    catalogue=lambda quick: catalogue(QUICK if quick else FULL),
    page=_write_page,
    unavailable=namespace.unavailable,
)

if __name__ == "__main__":
    sys.exit(SUITE.main(sys.argv[1:]))
