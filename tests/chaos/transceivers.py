"""The first of two transceivers is killed, or told to drain, with calls on it."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from relayctl.wire.address import render
from tests.chaos import transceiver_killed_page
from tests.clients.lean_driver import LeanDriver
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab.fleet import fleet
from tests.lab.redis_server import RedisServer
from tests.lab.service_config import CLUSTER, Backend
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import SIGNALING_INNER, TRANSCEIVERS, Lab
from tests.report import Target

PREFIX = "ch-"
CALLS = 20
NEW_CALLS = 5
BROWSERS = ("chromium", "firefox")
FORGET_S = 10.0
NOTICED_MS = 2000
BACK_MS = 2000
DRAIN_S = 120.0
SPOKEN_S = 5.0  # of the control run, and of the drain
SCALED_UP_S = 5.0
END_S = 15.0  # for a transceiver whose last call has ended
SECOND = (TRANSCEIVERS[1], 5000)


def measurements() -> list[Measurement]:
    return [
        Measurement("transceiver_killed", _KILLED, transceiver_killed),
        *(
            Measurement(
                f"transceiver_killed_{name}", _page_targets(name), partial(page_rescued, name)
            )
            for name in BROWSERS
        ),
        Measurement("transceiver_drained", _DRAINED, transceiver_drained),
        Measurement("scaled_up", (Target("scaled_up_after", "≤", SCALED_UP_S, "s"),), scaled_up),
    ]


_KILLED = (Target("transceiver_killed_forgotten", "≤", FORGET_S, "s"),)
_DRAINED = (
    Target("transceiver_drained_calls_cut", "=", 0, "calls"),
    Target("transceiver_drained_lost_up", "=", 0, "packets"),
    Target("transceiver_drained_lost_down", "=", 0, "packets"),
    Target("transceiver_drained_new_on_it", "=", 0, "calls"),
    Target("transceiver_drained_new_failed", "=", 0, "calls"),
    Target("transceiver_drained_status", "=", 0),
)


def _page_targets(name: str) -> tuple[Target, ...]:
    return (
        Target(f"transceiver_killed_{name}_noticed", "≤", NOTICED_MS, "ms"),
        Target(f"transceiver_killed_{name}_voice_back", "≤", BACK_MS, "ms"),
        Target(f"transceiver_killed_{name}_items_equal", "=", True),
    )


def transceiver_killed(prefix: str = PREFIX, calls: int = CALLS) -> Findings:
    """How long the relay keeps confirmed flows to it, while their clients go on. Their packets may
    bring a flow back from Redis, as a new one that nothing confirms, until Redis has forgotten it
    too."""
    with _two(prefix) as (_, services), _talking(services, calls) as lean:
        before = _on(services, services.site.endpoint)
        expect(len(before) == calls, f"{len(before)} of {calls} flows to the one that will die")
        services.transceiver.kill()
        killed = time.monotonic()
        while left := _confirmed(services):
            expect(time.monotonic() - killed < 6 * FORGET_S, f"{len(left)} flows to it stay")
            time.sleep(0.1)
        forgotten = time.monotonic() - killed
        lean.program.kill()  # its calls have nobody to hang up to
    return Findings({"transceiver_killed_forgotten": round(forgotten, 1)})


def page_rescued(name: str, prefix: str = PREFIX) -> Findings:
    """The page notices, resumes at the other one, and the conversation is the old one."""
    with _two(prefix, "parrot") as place:
        services = place.services
        _start_second(place)
        owners = {
            services.site.endpoint: services.transceiver,
            SECOND: services.programs["transceiver-2"],
        }
        found = transceiver_killed_page.measure(services, owners, name)
    figures = {
        "noticed": found.notice_ms,
        "voice_back": found.voice_back_ms,
        "items_equal": found.items_equal,
    }
    return Findings(
        {f"transceiver_killed_{name}_{column}": value for column, value in figures.items()},
        dataclasses.asdict(found),
    )


def transceiver_drained(prefix: str = PREFIX, calls: int = CALLS) -> Findings:
    """SIGTERM under `calls` that speak. They go on as in the control run before, new ones go to the
    other transceiver, and the process ends by itself once they have hung up."""
    with _two(prefix) as place, _talking(place.services, calls) as lean:
        services = place.services
        _start_second(place)
        before = lean.report()["calls"]
        time.sleep(SPOKEN_S)
        control = lean.report()["calls"]
        process = services.transceiver.process
        process.terminate()
        time.sleep(SPOKEN_S / 2)
        with _talking(services, NEW_CALLS) as fresh:
            on_it = len(_on(services, services.site.endpoint)) - calls
            failed = sum(bool(call["error"]) for call in fresh.report()["calls"])
        time.sleep(SPOKEN_S / 2)
        drained = lean.report()["calls"]
        cut = sum(not _went_on(*pair) for pair in zip(control, drained, strict=True))
        lean.stop()
        status = process.wait(END_S)
        # Gone with it is only what ended by itself: it is not to be told to stop once more.
        services.programs.pop("transceiver")
    return Findings(
        {
            "transceiver_drained_calls_cut": cut,
            "transceiver_drained_lost_up": _more_lost(before, control, drained, "up"),
            "transceiver_drained_lost_down": _more_lost(before, control, drained, "down"),
            "transceiver_drained_new_on_it": on_it,
            "transceiver_drained_new_failed": failed,
            "transceiver_drained_status": status,
        }
    )


def scaled_up(prefix: str = PREFIX) -> Findings:
    """From when another transceiver says that it is ready until it gets a new call."""
    with fleet(prefix) as grown:
        grown.place()  # so that the other one is the less loaded
        grown.start_another()
        ready = time.monotonic()
        while grown.place() != render(SECOND):
            expect(time.monotonic() - ready < 6 * SCALED_UP_S, "it gets no calls")
            time.sleep(0.05)
        return Findings({"scaled_up_after": round(time.monotonic() - ready, 2)})


class Place(NamedTuple):
    lab: Lab
    services: Services


@contextlib.contextmanager
def _two(prefix: str, backend: Backend = "echo") -> Iterator[Place]:
    """A place for two transceivers, of which the first one runs, that drain in their time."""
    with (
        Lab(prefix, transceivers=2) as lab,
        RedisServer(lab.signaling, host=SIGNALING_INNER) as redis,
    ):
        services = Services(in_lab(lab), echo="opus", backend=backend, redis=redis.url)
        services.setup = dataclasses.replace(services.setup, drain_s=DRAIN_S)
        with services:
            try:
                yield Place(lab, services)
            finally:
                for name in ("transceiver", "transceiver-2"):
                    if name in services.programs and not services.programs[name].running:
                        services.programs.pop(name)  # it was killed on purpose


def _start_second(place: Place) -> None:
    place.services.start_another("transceiver-2", place.lab.transceivers[1], SECOND, CLUSTER)
    time.sleep(3.0)  # signaling looks each second


def _talking(services: Services, calls: int) -> LeanDriver:
    site = services.site
    options = ("--calls", str(calls), "--every", "0.05")
    return LeanDriver.start(site.client, site.calls_url, site.client_host, *options)


def _on(services: Services, endpoint: tuple[str, int]) -> list[dict[str, Any]]:
    """The flows to it."""
    where = f"{endpoint[0]}:{endpoint[1]}"
    return [flow for flow in services.flows() if flow["endpoint"] == where]


def _confirmed(services: Services) -> list[dict[str, Any]]:
    flows = _on(services, services.site.endpoint)
    return [flow for flow in flows if flow["state"] == "confirmed"]


def _went_on(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Half of the packets of the time have come at least."""
    came: int = after["received"] - before["received"]
    return bool(after["state"] == "connected" and came >= SPOKEN_S * 50 / 2)


def _more_lost(
    before: list[dict[str, Any]],
    control: list[dict[str, Any]],
    after: list[dict[str, Any]],
    way: str,
) -> int:
    """Than in the control run. Upwards a packet under way at the moment of a report counts, so
    one of each call does not."""
    first, second, third = (
        sum(call["lost"][way] for call in calls) for calls in (before, control, after)
    )
    slack = len(after) if way == "up" else 0
    more: int = (third - second) - (second - first) - slack
    return max(0, more)
