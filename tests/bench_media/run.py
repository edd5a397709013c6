"""`make bench-media`: what the media path carries, beside stock aiortc and Pion; see `Suite`."""

import sys
from pathlib import Path

from tests.audio import long_talk, loss_and_jitter, lost_packet, resampling, wire_to_wire
from tests.bench_media import abandoned, hijack, page, reload
from tests.bench_media.effort import FULL, QUICK, Effort
from tests.bench_media.measured import capacity, memory, setups
from tests.bench_media.rig import DIRECTORY
from tests.figures.measurement import Measurement
from tests.figures.suite import Suite
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


def _write_page(report: Path) -> None:
    page.write(report, DOCUMENTS)


SUITE = Suite(
    target="bench-media",
    title="Media path",
    module="tests.bench_media.run",
    directory=DIRECTORY,
    catalogue=lambda quick: catalogue(QUICK if quick else FULL),
    page=_write_page,
    unavailable=namespace.unavailable,
)

if __name__ == "__main__":
    sys.exit(SUITE.main(sys.argv[1:]))
