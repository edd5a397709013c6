"""`make conversations`: turns, barge-in and backends that fail, measured; see `Suite`."""

import sys
from pathlib import Path

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
from tests.figures.suite import Suite
from tests.lab.node import REPOSITORY

WITH_EFFORT = (scripted, barge_in, position, append_latency, backend_faults, capacity)
AS_THEY_ARE = (pauses, own_echo)
DOCUMENTS = REPOSITORY / "docs" / "conversations"


def catalogue(effort: Effort) -> list[Measurement]:
    return [
        *(each for module in WITH_EFFORT for each in module.measurements(effort)),
        *(each for module in AS_THEY_ARE for each in module.measurements()),
    ]


def _write_page(report: Path) -> None:
    page.write(report, DOCUMENTS)


SUITE = Suite(
    target="conversations",
    title="Conversations",
    module="tests.conversations.run",
    directory=DIRECTORY,
    catalogue=lambda quick: catalogue(QUICK if quick else FULL),
    page=_write_page,
)

if __name__ == "__main__":
    sys.exit(SUITE.main(sys.argv[1:]))
