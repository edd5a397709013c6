"""A call's figures: every target is measured, and what went wrong misses its target."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.demo.account import Account, account, targets
from tests.demo.ledger import Carried, Counted, Ledger
from tests.lab.speech import OTHER, RATE, spoken
from tests.report import judge
from tests.unit.demo.test_talk import far, talk

VIP = "203.0.113.10:3478"
SECONDS = 6
FLOW = {"client": "10.1.0.2:5", "packets": {"up": 521, "down": 510}}
WHOLE = Ledger(Carried(520, 1), Carried(510, 0), {"punt_first": 1}, {})
SINCE = Ledger(Carried(510, 0), Carried(500, 0), {}, {})
GOOD = Counted(FLOW, WHOLE, SINCE)


def made(counted: Counted = GOOD, xdp: bool = True, **changes: Any) -> Account:
    said = talk(**{"heard": spoken(SECONDS + 1)} | changes)
    return account(said, counted, xdp=xdp, seconds=SECONDS)


def missed(call: Account, xdp: bool = True) -> set[str]:
    results = judge(targets("aiortc", xdp=xdp, vip=VIP, seconds=SECONDS), call.values)
    return {result.name.removeprefix("aiortc: ") for result in results if not result.ok}


@pytest.mark.parametrize("xdp", [True, False])
def test_a_good_call_meets_every_target(xdp: bool) -> None:
    assert missed(made(xdp=xdp), xdp) == set()


def punted(packets: int) -> Counted:
    since = dataclasses.replace(SINCE, punts={"punt_nexthop": packets})
    return dataclasses.replace(GOOD, since_confirmed=since)


def changed(**changes: Any) -> Counted:
    return dataclasses.replace(GOOD, **changes)


@pytest.mark.parametrize(
    ("counted", "changes", "names"),
    [
        (GOOD, {"received": 499}, {"RTP packets lost"}),
        (GOOD, {"far": far(499, 499, lost=1), "received": 499}, {"RTP packets lost"}),
        (GOOD, {"remote": "10.2.0.2:5000"}, {"selected remote"}),
        (GOOD, {"remote": None}, {"selected remote"}),
        (punted(2), {}, set()),
        (punted(3), {}, {"kernel share up", "kernel share down"}),
        (changed(since_confirmed=None), {}, {"kernel share up", "kernel share down"}),
        (changed(flow={"packets": {"up": 9, "down": 510}}), {}, {"relay and ends agree"}),
        (GOOD, {"heard": spoken(7, OTHER)}, {"correlation", "negative control"}),
        (GOOD, {"heard": np.zeros(7 * RATE)}, {"correlation", "seconds judged"}),
        (GOOD, {"heard": spoken(2)}, {"seconds judged"}),
    ],
)
def test_a_fault_misses_its_target(
    counted: Counted, changes: dict[str, Any], names: set[str]
) -> None:
    assert missed(made(counted, **changes)) == names


def test_the_entry_tells_what_the_report_promises() -> None:
    entry = made().entry
    assert entry["packets"] == {
        "up": {"kernel": 520, "user": 1},
        "down": {"kernel": 510, "user": 0},
    }
    assert entry["since_confirmed"] == {"kernel": {"up": 510, "down": 500}, "punts": {}}
    assert entry["punts"] == {"punt_first": 1}
    assert entry["lost"] == {"up": 0, "down": 0}
    assert entry["echo_delay_ms"] == 90
    assert entry["correlation"] == 1
