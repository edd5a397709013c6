"""A datagram of the DTLS handshake is lost: how long does the call take then?"""

import dataclasses
from typing import Any

from tests.browser import browser
from tests.lab.frame import Kind
from tests.lab.impairment import DOWN, UP, Rule
from tests.lab.services import Services
from tests.lab.topology import Lab

ONE_WAY_S = 0.01  # both ways
LONGEST_MS = 4 * 2 * ONE_WAY_S * 1e3 + 300  # four round trips and a retransmission


def rules(*lost: Rule) -> dict[str, Any]:
    every = (Rule(delay_s=ONE_WAY_S), *lost)
    return {
        "op": "rules",
        "rules": [dataclasses.asdict(rule) | {"kinds": sorted(rule.kinds)} for rule in every],
    }


def test_each_lost_handshake_datagram_costs_little(
    lab: Lab, services: Services, browser_name: str
) -> None:
    dtls = frozenset({Kind.DTLS})
    losses = {
        "none": (),
        **{
            f"{direction} {nth}": (Rule(direction, dtls, nth=(nth,), drop=1.0),)
            for direction in (UP, DOWN)
            for nth in (1, 2)
        },
    }
    socket = lab.directory / "hop.sock"
    cases = [
        {"name": name, "command": browser.tell_hop(socket, rules(*lost))}
        for name, lost in losses.items()
    ]
    options = {"url": f"{services.site.base_url}/", "browser": browser_name, "cases": cases}
    report = browser.run(services.site.client, "losses", options, limit_s=90)
    lines = {case["name"]: case["timeline"] for case in report["cases"]}
    assert lines.keys() == losses.keys()
    taken = {name: line["channel"] - line["ice"] for name, line in lines.items()}
    print(browser_name, taken)
    assert {name: ms for name, ms in taken.items() if ms > LONGEST_MS} == {}, taken
