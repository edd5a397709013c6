"""`make soak`: calls come and go for 20 minutes while one fault after another strikes.

    python -m tests.soak.run [--seconds N] [--seed N]

Memory, descriptors, flows and keys in Redis are sampled each 5 s and have to be flat (see
`tests.soak.flat`); the calls that stay for all the time have to live. Faults and calls follow from
the seed. No fault restarts the transceiver, so its line is one process; those of relay and
signaling begin anew where a fault killed them. Writes build/soak/report.json and plots, and with
the full length also docs/chaos/soak-*.svg. Ends with status 1 when a target is missed.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from tests import report
from tests.bench import svg
from tests.chaos import links, nat, relays, signaling_down, storage
from tests.chaos.callers import Page
from tests.chaos.scenario import Fault, Needs
from tests.chaos.stage import Stage, stage
from tests.clients.lean_driver import LeanDriver
from tests.lab import namespace
from tests.lab.node import REPOSITORY
from tests.report import Target, Value
from tests.soak.flat import Bound, Series, Trend, trend
from tests.soak.sampling import SERVICES, Samples

OUTPUT = REPOSITORY / "build" / "soak"
PREFIX = "so-"
SECONDS = 1200
LEAN_CALLS = 6  # that stay
VISITORS = 6  # that come and go, at most
PAUSE_S = 8.0  # between two faults, at most
EMPTY_S = 75.0  # for the flows of calls that are over: 30 s without packets, or 10, and the sweep
FAULTS: tuple[Callable[[Stage], Fault], ...] = (
    *(storage.redis_killed, storage.redis_hung, storage.redis_flushed, storage.redis_full),
    *(nat.nat_moves_together, nat.nat_moves_often_together, relays.daemon_killed),
    *(links.outer_mac, links.inner_mac, links.outer_link_down, links.inner_link_down),
    signaling_down.signaling_down,
)
BOUNDS = {
    **{f"{name}_memory": Bound(0.10, 8.0) for name in SERVICES},  # MB
    **{f"{name}_descriptors": Bound(0.10, 12) for name in SERVICES},  # each visitor has some
    "flows": Bound(0.25, 2 * VISITORS),
    "redis_keys": Bound(0.25, 150),  # NAT moves leave a key for each path, for 120 s
}
TARGETS = (
    *(Target(f"{name}_flat", "=", True) for name in BOUNDS),
    Target("flows_left", "=", 0, "flows"),
    Target("calls_lost", "=", 0, "calls"),
    Target("faults_failed", "=", 0, "faults"),
)
PLOTS = {
    "memory": ("Memory of each service", "MB", [f"{name}_memory" for name in SERVICES]),
    "descriptors": ("Descriptors", "", [f"{name}_descriptors" for name in SERVICES]),
    "flows": ("Flows, and keys in Redis", "", ["flows", "redis_keys"]),
}


def soak(seconds: float, seed: int, say: Console) -> tuple[dict[str, Value], dict[str, Any]]:
    """The figures and what they come from."""
    needs = Needs(redis=True, hop=True)
    with stage(needs, PREFIX, seed, LEAN_CALLS, browsers=False) as place:
        page = Page.start(place.site.client, "chromium", f"{place.site.base_url}/", recovers=True)
        samples = Samples(place)
        samples.start()
        try:
            struck = _strike(place, seconds, random.Random(seed), say)
            alive = _alive(place, page)
        finally:
            series = samples.stop()
            page.stop()
        place.callers.lean.stop()
        left = _left(place)
    trends = trends_of(series)
    values: dict[str, Value] = {f"{name}_flat": found.flat for name, found in trends.items()}
    values |= {
        "flows_left": left,
        "calls_lost": LEAN_CALLS + 1 - alive,
        "faults_failed": sum(fault["error"] is not None for fault in struck),
    }
    shown = {name: asdict(found) for name, found in trends.items()}
    return values, {"faults": struck, "trends": shown, "series": series}


def trends_of(series: Mapping[str, Series]) -> dict[str, Trend]:
    """Raises `ValueError` for a run that is too short."""
    return {name: trend(series.get(name, ()), bound) for name, bound in BOUNDS.items()}


def _strike(place: Stage, seconds: float, source: random.Random, say: Console) -> list[Any]:
    """One fault after another, each under other visitors; what became of each."""
    began = time.monotonic()
    struck: list[dict[str, Any]] = []
    while (at := time.monotonic() - began) < seconds:
        fault = source.choice(FAULTS)
        error = _one(place, fault, source.randint(1, VISITORS))
        say.print(f"{at:6.0f} s  {fault.__name__}  {error or ''}", markup=False)
        struck.append({"at_s": round(at, 1), "fault": fault.__name__, "error": error})
        place.tap.forget()  # or our own memory would grow
        time.sleep(source.uniform(1.0, PAUSE_S))
    return struck


def _one(place: Stage, fault: Callable[[Stage], Fault], visitors: int) -> str | None:
    """Why it failed, if it did."""
    site = place.site
    options = ("--calls", str(visitors), "--every", "0.2")
    try:
        with LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as driver:
            failed = sum(bool(call["error"]) for call in driver.first["calls"])
            told = fault(place).values
    except Exception as error:  # whatever takes part may fail, and the next one strikes
        return f"{type(error).__name__}: {error}".splitlines()[0]
    if failed or told.get("new_calls_failed"):
        return f"new calls failed: {failed} before, {told.get('new_calls_failed', 0)} during it"
    return None


def _alive(place: Stage, page: Page) -> int:
    """How many of the calls that stay still hear something."""
    before = [call["received"] for call in place.callers.lean.report()["calls"]]
    place.tap.forget()
    time.sleep(2.0)
    after = [call["received"] for call in place.callers.lean.report()["calls"]]
    lean: int = sum(now - then >= 50 for then, now in zip(before, after, strict=True))
    return lean + int(page.ask("report")["ssrc"] in place.tap.pairs())


def _left(place: Stage) -> int:
    """Flows that are there long after the last call."""
    deadline = time.monotonic() + EMPTY_S
    while (left := len(place.services.flows())) and time.monotonic() < deadline:
        time.sleep(1.0)
    return left


def plots(series: Mapping[str, Series]) -> dict[str, str]:
    """SVG by name."""
    found = {}
    for name, (title, unit, wanted) in PLOTS.items():
        chosen = {one: [(at / 60, value) for at, value in series.get(one, ())] for one in wanted}
        points = [point for each in chosen.values() for point in each]
        if points:
            longest = max(at for at, _ in points)
            highest = max(value for _, value in points)
            x = svg.plain_axis("minutes", longest, lambda value: f"{value:g}")
            y = svg.plain_axis(unit, max(1.0, highest), lambda value: f"{value:g}")
            found[name] = svg.lines(title, x, y, chosen)
    return found


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.soak.run")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    if refused := namespace.unavailable():
        say.print(f"soak: {refused}", style="red", markup=False)
        return 1
    values, detail = soak(arguments.seconds, arguments.seed, say)
    results = report.judge(TARGETS, values)
    path = OUTPUT / "report.json"
    report.write(path, " ".join(["python -m tests.soak.run", *argv]), results, **detail)
    places = [OUTPUT] + [REPOSITORY / "docs" / "chaos"] * (arguments.seconds >= SECONDS)
    for name, text in plots(detail["series"]).items():
        for place in places:
            _write(place / f"soak-{name}.svg", text)
    say.print(report.table("Soak", results))
    return 0 if all(result.ok for result in results) else 1


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
