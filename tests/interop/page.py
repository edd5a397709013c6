"""docs/interop from a report. No cell is typed by hand.

python -m tests.interop.page [REPORT [DIRECTORY]]
"""

import json
import string
import sys
from pathlib import Path

from tests.bench import markdown
from tests.interop.cells import HEADINGS, rows
from tests.interop.clients import clients
from tests.interop.stage import Stage
from tests.lab.node import REPOSITORY

HERE = Path(__file__).parent


def write(report: Path, directory: Path) -> None:
    """README.md of a whole report (JSON)."""
    content = json.loads(report.read_text())
    machine = content["machine"]
    results = {row["name"]: row["value"] for row in content["results"]}
    directory.mkdir(parents=True, exist_ok=True)
    template = string.Template((HERE / "page.md").read_text())
    (directory / "README.md").write_text(
        template.substitute(
            machine=f"{machine['cpu']}, {machine['cores']} cores, kernel {machine['kernel']}",
            version=content["versions"]["ferryline"],
            table=markdown.table(("client", *HEADINGS), rows(results, clients(Stage()))),
            failed=markdown.failed(content["measurements"]),
        )
    )


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:3]]
    defaults = [REPOSITORY / "build/test-interop/report.json", REPOSITORY / "docs/interop"]
    write(*given, *defaults[len(given) :])
