"""`make test-interop`: real clients, unchanged, against the services; see `Suite`.

Each client is one measurement with a target for each cell of its row.
"""

import sys
from functools import partial

from tests.figures.measurement import Measurement
from tests.figures.suite import Suite
from tests.interop import page
from tests.interop.clients import clients
from tests.interop.install import unavailable
from tests.interop.stage import DIRECTORY, Stage
from tests.lab import namespace
from tests.lab.node import REPOSITORY

DOCUMENTS = REPOSITORY / "docs" / "interop"


def catalogue(stage: Stage, quick: bool) -> list[Measurement]:
    return [client.measurement() for client in clients(stage)]


def suite(stage: Stage) -> Suite:
    return Suite(
        target="test-interop",
        title="Real clients",
        module="tests.interop.run",
        directory=DIRECTORY,
        catalogue=partial(catalogue, stage),
        page=lambda report: page.write(report, DOCUMENTS),
        unavailable=lambda: namespace.unavailable() or unavailable(),
    )


def main(argv: list[str]) -> int:
    with Stage() as stage:
        return suite(stage).main(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
