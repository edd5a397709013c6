"""`make test-kernels`: the product's program on stock Debian kernels, in software emulation.

    python -m tests.kernels.run [--kernel 6.1]… [--refresh]

Each kernel boots with this host's root as its own, read-only, and there the product's own loader
compiles, loads and attaches. Writes build/test-kernels/report.json (partial.json with --kernel) and
each guest's console beside it. Ends with status 1 if a kernel does not do what it has to, 2 if the
matrix cannot run. `--refresh` asks Debian's archive for newer point releases at once.
"""

import argparse
import itertools
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests import report
from tests.kernels import judge, machine
from tests.kernels.archive import Archive, Image
from tests.kernels.initramfs import CLOSING, initramfs
from tests.kernels.install import Unavailable, install
from tests.kernels.series import MATRIX
from tests.report import Target

REPOSITORY = Path(__file__).parents[2]
CACHE = REPOSITORY / "build" / "kernels" / "cache"
BUSYBOX = Path("/bin/busybox")
OUTPUT = REPOSITORY / "build" / "test-kernels"
_GUEST_S = 1500  # what a fault may cost, not what an idle machine takes
_AT_ONCE = 2  # each guest has one virtual CPU


@dataclass(frozen=True, slots=True)
class Outcome:
    image: Image
    seconds: float
    findings: dict[str, Any]
    complaints: list[str] = field(default_factory=list)


def boot(image: Image, say: Console) -> Outcome:
    """Boot one kernel and judge what it found; what goes wrong is its outcome."""
    began = time.monotonic()
    directory = OUTPUT / image.series.name
    steps = ", ".join(judge.steps(image.series))
    say.print(f"{image.package.release} boots: {steps} ({_shown(directory)}/)", markup=False)
    findings: dict[str, Any] = {}
    try:
        findings = machine.run(_boot(image), directory)
        complaints = judge.complaints(image.series, findings)
    except machine.NoClosingLine as error:
        complaints = [str(error)]
    return Outcome(image, round(time.monotonic() - began, 1), findings, complaints)


def _boot_all(images: Sequence[Image], say: Console) -> list[Outcome]:
    """Boot them two at a time, and tell of each when it has ended."""
    outcomes = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            for outcome in pool.map(boot, images, itertools.repeat(say)):
                outcomes.append(outcome)
                _tell(say, outcome)
        except BaseException:  # Ctrl-C above all: the pool would wait for its guests
            pool.shutdown(wait=False, cancel_futures=True)
            machine.end_all()
            raise
    return outcomes


def _boot(image: Image) -> machine.Boot:
    python = REPOSITORY / ".venv" / "bin" / "python"
    steps = judge.steps(image.series)
    command = [str(python), "-m", "tests.kernels.guest", CLOSING, *steps]
    root = initramfs(
        BUSYBOX.read_bytes(),
        {module.name: module.read_bytes() for module in image.modules},
        command,
        str(REPOSITORY),
        _GUEST_S,
    )
    return machine.Boot(image.vmlinuz, root, _GUEST_S + 60)


def table(outcomes: Sequence[Outcome]) -> Table:
    columns = ("kernel", "boot s", "load s", "instructions", "attach", "tests", "VLAN", "all s", "")
    rows = Table(*columns, title="The program on Debian's kernels", title_justify="left")
    for outcome in outcomes:
        verdict = "[bold red]FAILED[/]" if outcome.complaints else "[green]ok[/]"
        rows.add_row(outcome.image.package.release, *_cells(outcome), verdict)
    return rows


def _cells(outcome: Outcome) -> list[str]:
    found = outcome.findings
    load, tests, vlan = (found.get(step, {}) for step in ("load", "tests", "vlan"))
    bad = [f"{len(tests[how])} {how}" for how in ("failed", "skipped") if tests.get(how)]
    return [
        str(found.get("boot_seconds", "-")),
        "refused" if "error" in load else str(load.get("wall_seconds", "-")),
        f"{load['instructions']:,}" if "instructions" in load else "-",
        ", ".join(mode for mode, name in found.get("attach", {}).items() if name == f"xdp-{mode}")
        or "-",
        ", ".join([f"{tests['passed']} passed", *bad]) if "passed" in tests else "-",
        f"{list(vlan.values()).count('ok')} of {len(vlan)}" if vlan else "-",
        f"{outcome.seconds:.0f}",
    ]


def main(arguments: Sequence[str]) -> int:
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    asked = _parse(arguments)
    wanted = [series for series in MATRIX if not asked.kernel or series.name in asked.kernel]
    try:
        if installed := install():
            say.print(f"installed {', '.join(installed)}", markup=False)
        images = Archive(CACHE).fetch(wanted, refresh=asked.refresh)
    except Unavailable as error:
        say.print(f"test-kernels: {error}", style="red", markup=False)
        return 2
    outcomes = _boot_all(images, say)
    path = OUTPUT / ("partial.json" if asked.kernel else "report.json")
    results = report.judge(
        [Target(series.name, "=", judge.ALL_PASS) for series in wanted],
        {outcome.image.series.name: judge.verdict(outcome.complaints) for outcome in outcomes},
    )
    command = " ".join(["python -m tests.kernels.run", *arguments])
    report.write(
        path, command if arguments else "make test-kernels", results, kernels=_details(outcomes)
    )
    say.print(table(outcomes))
    ok = all(result.ok for result in results)
    say.print(f"{'all good' if ok else 'FAILED'}; {_shown(path)}")
    return 0 if ok else 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.kernels.run")
    names = [series.name for series in MATRIX]
    parser.add_argument("--kernel", action="append", choices=names, help="only this series")
    parser.add_argument("--refresh", action="store_true", help="look for newer point releases")
    return parser.parse_args(arguments)


def _tell(say: Console, outcome: Outcome) -> None:
    release, seconds = outcome.image.package.release, f"{outcome.seconds:.0f} s"
    if not outcome.complaints:
        say.print(f"{release}: {judge.ALL_PASS}, {seconds}", markup=False)
    if outcome.image.series.below_floor:
        said = outcome.findings.get("load", {}).get("error", "loads")
        say.print(
            f"{release} is below the floor, where only the controls count; {said}", markup=False
        )
    for complaint in outcome.complaints:
        say.print(f"{release}: {complaint}", style="red", markup=False)


def _shown(path: Path) -> Path:
    return path.relative_to(REPOSITORY)


def _details(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        outcome.image.series.name: {
            "package": f"{outcome.image.package.name} {outcome.image.package.version}",
            "seconds": outcome.seconds,
            **outcome.findings,
            "complaints": outcome.complaints,
        }
        for outcome in outcomes
    }


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # and end the guests
    sys.exit(main(sys.argv[1:]))
