"""A path that loses some of its checks, or is very long, ends no call and starts none anew."""

import dataclasses
from typing import Any

import pytest

from tests.browser import browser
from tests.lab.frame import Kind
from tests.lab.impairment import DOWN, UP, Rule
from tests.lab.services import Services
from tests.lab.topology import Lab

pytestmark = pytest.mark.slow

LOST = (1, 2, 3)
SETTLE_S = 14  # checks come each 2.5 s (Chromium) or 5 s (Firefox)
ONE_WAY_S = 0.3


def weather(lab: Lab, services: Services, browser_name: str, when: str, rule: Rule) -> Any:
    """What came of a call with `rule` "before" it or "during" it."""
    fields = dataclasses.asdict(rule) | {"kinds": sorted(rule.kinds)}
    socket = lab.directory / "hop.sock"
    options = {
        "url": f"{services.site.base_url}/",
        "browser": browser_name,
        "settle_s": SETTLE_S,
        when: browser.tell_hop(socket, {"op": "rules", "rules": [fields]}),
        "after": browser.tell_hop(socket, {"op": "counters", "reset": True}),
    }
    return browser.run(services.site.client, "weather", options, limit_s=80)


def expect_one_call(report: Any) -> None:
    """From its beginning to its end, without any recovery."""
    first, last = report["first"], report["last"]
    assert report["heard"]
    assert report["faults"] == []
    assert report["states"] == ["idle", "asking", "calling", "connected"]
    assert report["restarts"] == 0
    assert last["call_id"] == first["call_id"]  # though Firefox may say "disconnected" meanwhile
    assert last["received"] - first["received"] > 40 * SETTLE_S  # of 50


def test_a_few_lost_checks_are_nothing(lab: Lab, services: Services, browser_name: str) -> None:
    checks = frozenset({Kind.STUN})
    lost = Rule(kinds=checks, nth=LOST, drop=1.0)
    report = weather(lab, services, browser_name, "during", lost)
    assert all(report["after"][way]["stun"]["dropped"] for way in (UP, DOWN)), report["after"]
    expect_one_call(report)


def test_600_ms_there_and_back(lab: Lab, services: Services, browser_name: str) -> None:
    long = Rule(delay_s=ONE_WAY_S)
    report = weather(lab, services, browser_name, "before", long)
    expect_one_call(report)
    assert report["first"]["selected"]["rtt_s"] >= 2 * ONE_WAY_S
