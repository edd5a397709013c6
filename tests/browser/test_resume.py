"""The server of a call is killed in mid-call: the page goes on elsewhere, with what was said."""

import contextlib
import dataclasses
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from relayctl.wire.address import render
from tests.browser import browser
from tests.lab.fleet import FIRST, SECOND
from tests.lab.frame import MEDIA
from tests.lab.redis_server import RedisServer
from tests.lab.service_config import CLUSTER
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import SIGNALING_INNER, Lab

WORDS = ["one", "two <b>three</b>", "one"]  # twice the same: it is no repetition
LATER = "four"


@dataclass
class World:
    """Two transceivers that a Redis knows, and that keep conversations there."""

    lab: Lab
    redis: RedisServer
    services: Services

    def start(self) -> None:
        """Whatever was killed before."""
        with contextlib.suppress(KeyError):
            if not self.services.programs["transceiver"].running:
                self.services.start_transceiver()
        another = self.services.programs.get("another")
        if another is None or not another.running:
            self.services.start_another("another", self.lab.transceivers[1], SECOND, CLUSTER)

    @property
    def owners(self) -> dict[str, int]:
        programs = self.services.programs
        return {render(FIRST): programs["transceiver"].pid, render(SECOND): programs["another"].pid}

    def run(self, name: str, scenario: str = "resume", **options: Any) -> dict[str, Any]:
        options = {"browser": name, "url": f"{self.services.site.base_url}/", **options}
        if scenario == "resume":
            options = {"owners": self.owners, "words": WORDS, **options}
        return browser.run(self.services.site.client, scenario, options, limit_s=120)


@pytest.fixture(scope="module")
def fleet(prefix: str) -> Iterator[World]:
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(Lab(f"{prefix}r-", hop="fault", transceivers=2))
        redis = stack.enter_context(RedisServer(lab.signaling, host=SIGNALING_INNER))
        site = dataclasses.replace(in_lab(lab), allow="10.2.0.0/24")
        services = Services(site, datapath="socket", backend="parrot", redis=redis.url)
        stack.enter_context(services)
        stack.callback(forget_killed, services)
        yield World(lab, redis, services)


def forget_killed(services: Services) -> None:
    """That they were killed is no fault of theirs."""
    for name, program in [*services.programs.items()]:
        if not program.running and program.stop() == -signal.SIGKILL:
            del services.programs[name]


@pytest.fixture
def world(fleet: World) -> World:
    fleet.lab.hop.clear()
    fleet.start()
    return fleet


def said(turns: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(turn["who"], turn["text"]) for turn in turns]


def kept(items: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Messages as the page names them."""
    names = {"user": "user", "assistant": "agent"}
    return [(names[item["role"]], item["content"][0]["text"]) for item in items]


def test_a_killed_transceiver_costs_no_word(world: World, browser_name: str) -> None:
    report = world.run(browser_name, after=LATER)
    before, after, end = report["before"], report["after"], report["end"]
    print(browser_name, report["times"])
    assert report["heard"]
    assert report["faults"] == []
    assert report["now"] != report["endpoint"]
    assert after["call_id"] != before["call_id"]
    assert (after["resumes"], after["restarts"]) == (1, 0)
    assert report["begun"] == ["", f"?resume={before['call_id']}"]

    said_before = [(who, text) for text in WORDS for who in ("user", "agent")]
    assert said(before["turns"]) == said_before
    assert kept(report["items"]) == said_before  # what the server says
    seam = ("page", "Connected again on another server")
    assert said(after["turns"]) == [*said_before, seam]  # and what is shown: once
    assert after["rows"] == len(after["turns"])
    assert said(end["turns"]) == [*said_before, seam, ("user", LATER), ("agent", LATER)]
    assert after["status"].startswith("Connected again on another server after ")
    assert set(report["rescue"]["states"]) == {"recovering", "connected"}


def test_a_transceiver_that_goes_down_costs_no_word(world: World) -> None:
    if reason := browser.unavailable("chromium"):
        pytest.skip(reason)
    report = world.run("chromium", signal="SIGTERM", after=LATER)
    after, end = report["after"], report["end"]
    said_before = [(who, text) for text in WORDS for who in ("user", "agent")]
    assert report["now"] != report["endpoint"]
    assert after["resumes"] == 1
    assert kept(report["items"]) == said_before
    assert said(end["turns"])[-2:] == [("user", LATER), ("agent", LATER)]
    assert report["faults"] == []


def test_a_lost_path_alone_is_restarted(world: World) -> None:
    if reason := browser.unavailable("chromium"):
        pytest.skip(reason)
    socket = world.lab.directory / "hop.sock"
    everything = {"kinds": sorted(MEDIA), "nth": [], "drop": 1.0}
    report = world.run(
        "chromium",
        "lost_path",
        lose=browser.tell_hop(socket, {"op": "rules", "rules": [everything]}),
        find=browser.tell_hop(socket, {"op": "rules", "rules": []}),
    )
    before, after = report["before"], report["after"]
    assert report["faults"] == []
    assert after["call_id"] == before["call_id"]
    assert after["stats"]["restarts"] >= 1
    assert after["stats"]["resumes"] == 0


def test_without_the_store_a_call_begins_anew_and_says_so(world: World, browser_name: str) -> None:
    assert world.redis.pid is not None
    try:
        report = world.run(browser_name, away=[world.redis.pid], after=LATER)
    finally:
        world.redis.kill()
        world.redis.start()
    before, after, end = report["before"], report["after"], report["end"]
    print(browser_name, report["times"])
    assert report["faults"] == []
    assert report["now"] != report["endpoint"]
    assert after["resumes"] == 0
    assert report["begun"] == ["", f"?resume={before['call_id']}", ""]
    assert report["items"] == []
    seam = "A new conversation: the other side does not know what was said above"
    assert said(after["turns"]) == [*said(before["turns"]), ("page", seam)]
    assert said(end["turns"])[-2:] == [("user", LATER), ("agent", LATER)]
    assert after["status"].startswith("Connected anew after ")


def test_whoever_hangs_up_is_not_connected_again(world: World, browser_name: str) -> None:
    report = world.run(browser_name, words=["one"], hang_up=True)
    assert (report["after"]["state"], report["after"]["call_id"]) == ("idle", None)
    assert report["faults"] == []
    # it may have asked already: nobody comes to that call, and nothing more is begun
    assert report["begun"] in ([""], ["", f"?resume={report['before']['call_id']}"])
