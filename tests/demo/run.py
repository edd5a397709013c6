"""`make demo`: the whole service, two calls of real speech, and what became of their packets.

With root in a lab of network namespaces over XDP; without it on 127.0.0.1 over the socket datapath.
Everything is left in build/demo: report.json, the recordings and a picture of the page. Ends with
status 1 when a call fails or misses a target.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from relayctl.wire.address import render
from tests import report
from tests.browser import browser
from tests.browser.browser import ScenarioError
from tests.demo import account, clients
from tests.demo.clients import ClientError
from tests.demo.talk import Talk
from tests.demo.watch import RelayWatch, WatchError
from tests.lab import namespace
from tests.lab.node import REPOSITORY
from tests.lab.program import ProgramError
from tests.lab.services import Services
from tests.lab.site import LoopbackPlace, Site, in_lab
from tests.lab.topology import Lab
from tests.report import Target, Value

OUTPUT = REPOSITORY / "build" / "demo"
PREFIX = "demo-"  # of the namespaces
PORTS = 25478  # without root
SHORTEST_S, LONGEST_S = 5, 600
PIPE_WIDTH = 100  # columns, where there is no terminal
CLIENTS: dict[str, Callable[[Services, float, Path], Talk]] = {
    "aiortc": clients.aiortc,
    "chromium": clients.chromium,
}
FAILURES = (ClientError, ScenarioError, WatchError, ProgramError)


class UsageError(Exception):
    """The demo was asked for something it cannot do; the message says what to do."""


class Demo:
    """The calls made so far, and what they came to."""

    def __init__(self, services: Services, datapath: str, seconds: float, say: Console) -> None:
        self.datapath = datapath
        self.calls: list[dict[str, Any]] = []
        self.targets: list[Target] = []
        self.values: dict[str, Value] = {}
        self._services = services
        self._seconds = seconds
        self._say = say

    def call(self, client: str) -> None:
        """One call; a failed one is an entry too, and its figures are missing."""
        xdp = self.datapath.startswith("xdp")
        vip = render(self._services.site.vip)
        self.targets += account.targets(client, xdp=xdp, vip=vip, seconds=self._seconds)
        self._say.print(f"{client}: talking for {self._seconds:g} s …")
        try:
            with RelayWatch(self._services, self.datapath) as watch:
                talk = CLIENTS[client](self._services, self._seconds, OUTPUT)
            counted = watch.count(talk.far["client"])
        except FAILURES as error:
            self._say.print(f"{client}: failed: {error}", style="red", markup=False, soft_wrap=True)
            self.calls.append({"client": client, "error": str(error)})
            return
        done = account.account(talk, counted, xdp=xdp, seconds=self._seconds)
        self.calls.append(done.entry)
        self.values |= done.values


def main() -> int:
    say = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    try:
        return _run(_seconds(os.environ.get("DEMO_SECONDS", "20")), say)
    except UsageError as error:
        message, status = str(error), 2
    except PermissionError as error:
        message = f"{error.filename}: belongs to another user; mend: remove it as its owner"
        status = 1
    except (ProgramError, OSError) as error:
        message, status = str(error), 1
    say.print(f"demo: {message}", style="red", markup=False, soft_wrap=True)
    return status


def _run(seconds: float, say: Console) -> int:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for leftover in OUTPUT.iterdir():  # of another run: not to be taken for this one's
        leftover.unlink()
    missing = browser.unavailable("chromium")
    with _services(say) as (services, rootless):
        datapath = json.loads(services.relayctl("status", "-o", "json").stdout)["datapath"]
        say.print(f"datapath: {datapath}{' (no privileges)' if rootless else ''}")
        demo = Demo(services, datapath, seconds, say)
        demo.call("aiortc")
        if missing is None or not rootless:
            demo.call("chromium")
        else:
            say.print(f"chromium: left out: {missing}", markup=False)
        return 0 if _conclude(demo, seconds, say) else 1


def _conclude(demo: Demo, seconds: float, say: Console) -> bool:
    """Show and write the report; whether every target was met."""
    results = report.judge(demo.targets, demo.values)
    ok = all(result.ok for result in results)
    say.print(_calls(demo.calls), report.table("Against the targets", results))
    more = {"datapath": demo.datapath, "seconds": seconds, "calls": demo.calls}
    path = OUTPUT / "report.json"
    report.write(path, f"make demo DEMO_SECONDS={seconds:g}", results, **more)
    where, kept = OUTPUT.relative_to(REPOSITORY), sorted(file.name for file in OUTPUT.iterdir())
    say.print(f"{'all good' if ok else 'FAILED'}; in {where}: {', '.join(kept)}", soft_wrap=True)
    return ok


@contextlib.contextmanager
def _services(say: Console) -> Iterator[tuple[Services, str | None]]:
    """The running services, and why they run without root if they do."""
    rootless = namespace.unavailable()
    place: Lab | LoopbackPlace = LoopbackPlace("demo", PORTS) if rootless else Lab(PREFIX)
    say.print(f"bringing up {'127.0.0.1' if rootless else 'the lab and its services'} …")
    if rootless:
        say.print(rootless, style="dim", markup=False)
    with place:
        site: Site = place.site() if isinstance(place, LoopbackPlace) else in_lab(place)
        with Services(site, datapath="socket" if rootless else "xdp") as services:
            yield services, rootless


def _calls(calls: list[dict[str, Any]]) -> Table:
    """For people: a column for each call."""
    made = [call for call in calls if "error" not in call]
    rows = Table("", *(call["client"] for call in made), title="Calls", title_justify="left")
    for phase in ("answer", "ice", "dtls", "channel", "first_audio"):
        label = phase.replace("_", " ").replace("ice", "ICE").replace("dtls", "DTLS")
        times = [call["setup_ms"].get(phase) for call in made]
        rows.add_row(f"{label} after", *("-" if ms is None else f"{ms:.0f} ms" for ms in times))
    for way in ("up", "down"):
        carried = [call["packets"][way] for call in made]
        rows.add_row(f"{way}: kernel / user", *(f"{c['kernel']} / {c['user']}" for c in carried))
    rows.add_row("lost up / down", *(f"{c['lost']['up']} / {c['lost']['down']}" for c in made))
    rows.add_row("echo after", *(f"{call['echo_delay_ms']:.0f} ms" for call in made))
    rows.add_row("correlation", *(f"{call['correlation']:.2f}" for call in made))
    return rows


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise UsageError(f"DEMO_SECONDS = {text!r}: want a number from {SHORTEST_S} to {LONGEST_S}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
