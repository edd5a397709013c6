"""docs/bench-signaling from a report. No figure in it is typed by hand.

python -m tests.bench_signaling.page [REPORT [DIRECTORY]]
"""

import json
import string
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench import markdown
from tests.bench_signaling.rates import LATE_S
from tests.lab.node import REPOSITORY

HERE = Path(__file__).parent
CLIENTS = ("chromium", "firefox", "lean")
NOT_MEASURED = "Not measured."

Detail = Mapping[str, Any]


def write(report: Path, directory: Path) -> None:
    """README.md of a whole report (JSON)."""
    content = json.loads(report.read_text())
    directory.mkdir(parents=True, exist_ok=True)
    template = string.Template((HERE / "page.md").read_text())
    (directory / "README.md").write_text(template.substitute(fields(content)))


def fields(content: Mapping[str, Any]) -> dict[str, str]:
    """What stands in the template's places."""
    machine, versions = content["machine"], content["versions"]
    detail = {name: made["detail"] for name, made in content["measurements"].items()}
    clients = {name: detail[f"setup_{name}"] for name in CLIENTS if detail.get(f"setup_{name}")}
    return {
        "machine": f"{machine['cpu']}, {machine['cores']} cores, kernel {machine['kernel']}",
        "version": versions["ferryline"],
        "targets": markdown.results(content["results"]),
        "failed": markdown.failed(content["measurements"]),
        "setups": setups(clients),
        "own": own(clients),
        "rates": rates(detail.get("offers_per_second", {})),
        "late": f"{LATE_S * 1e3:.0f}",
        "abandoned": abandoned(detail.get("abandoned_offers", {})),
        "malformed": malformed(detail.get("malformed_offers", {})),
        "schemathesis": schemathesis(detail.get("schemathesis", {})),
    }


def setups(clients: Mapping[str, Detail]) -> str:
    if not clients:
        return NOT_MEASURED
    head = ("client", "path", "calls", "HTTP", "ICE", "DTLS", "first packet", "whole", "ideal")
    rows = [
        (
            client,
            f"{path} ms",
            str(found["calls"]),
            *(_pair(found["phases"][phase]) for phase in ("answer", "ice", "dtls", "rtp")),
            _pair(found["total"]),
            str(found["ideal_ms"]),
            _pair(found["extra"]),
        )
        for client, detail in clients.items()
        for path, found in detail["paths"].items()
    ]
    return markdown.table((*head, "extra"), rows)


def own(clients: Mapping[str, Detail]) -> str:
    if not clients:
        return NOT_MEASURED
    rows = [
        (client, *(_pair(detail["own"][share]) for share in ("answer", "check", "flight")))
        for client, detail in clients.items()
    ]
    return markdown.table(
        ("client", "offer to answer", "check to response", "hello to flight"), rows
    )


def rates(found: Detail) -> str:
    if not found:
        return NOT_MEASURED
    rows = []
    for way, climb in found.items():
        rows += [_rate(way, step, "") for step in climb["steps"]]
        if climb["half"]:
            rows.append(_rate(way, climb["half"], ", half of the best"))
    head = ("connections", "offers a second", "answered", "not answered 201")
    return markdown.table((*head, "p50", "p95", "p99", "most", "CPU an offer"), rows)


def _rate(way: str, step: Detail, remark: str) -> tuple[str, ...]:
    others = step["offers"] - step["statuses"].get("201", 0)
    return (
        way,
        f"{step['rate']:.0f}{remark}",
        f"{step['answers_per_s']:.0f} a second",
        str(others),
        *(f"{step['ms'][name]} ms" for name in ("p50", "p95", "p99", "max")),
        f"{step['cpu_ms']:.2f} ms",
    )


def abandoned(found: Detail) -> str:
    if not found:
        return NOT_MEASURED
    sent = found["sent"]
    left = ", ".join(f"{n} {thing}" for thing, n in found["left"].items()) or "nothing"
    return (
        f"{sent['offers']:,} offers whose clients never came, {sent['statuses'].get('left', 0):,} "
        f"of them gone before the answer, left {left} behind: descriptors, sockets, calls, "
        f"entries of the mux, tasks, objects and flows are counted before and after. The "
        f"transceiver forgets an offer after `setup_s`, {found['setup_s']:g} s in this run."
    )


def malformed(found: Detail) -> str:
    if not found:
        return NOT_MEASURED
    rows = [(answer, str(count)) for answer, count in found["answers"].items()]
    told = markdown.table(("answer", "offers"), rows)
    return (
        f"{found['offers']:,} offers, each changed for the worse (seed {found['seed']}):\n\n{told}"
    )


def schemathesis(found: Detail) -> str:
    if not found:
        return NOT_MEASURED
    return (
        f"Schemathesis made {found['requests']:,} requests out of `/openapi.json`, for "
        f"{len(found['operations'])} operations: {len(found['server_errors'])} server errors, "
        f"{len(found['violations'])} answers that the document does not describe."
    )


def _pair(quantiles: Mapping[str, float]) -> str:
    return f"{quantiles['p50']} / {quantiles['p95']}"


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:3]]
    build = REPOSITORY / "build/bench-signaling/report.json"
    defaults = [build, REPOSITORY / "docs/bench-signaling"]
    write(*given, *defaults[len(given) :])
