"""How long a call takes to connect when a datagram of its DTLS handshake is lost.

Counted from the moment at which the browser's ICE is connected until its data channel is open,
since then both sides are done with the handshake. Each datagram is lost in several calls; the
slowest one is the figure. A call without loss is the control.
"""

import dataclasses
from functools import partial
from typing import Any

from tests.browser import browser
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab.deployment import deploy
from tests.lab.frame import Kind
from tests.lab.impairment import DOWN, UP, Rule
from tests.report import Target

CLIENTS = ("chromium", "firefox")
LOSSES = [(direction, nth) for direction in (UP, DOWN) for nth in (1, 2)]
ROUNDS = 3
ONE_WAY_S = 0.01
BOUND_MS = 4 * 2 * ONE_WAY_S * 1e3 + 300  # four round trips and 300 ms


def measurements() -> list[Measurement]:
    return [
        Measurement(f"handshake_loss_{client}", _targets(client), partial(measure, client))
        for client in CLIENTS
    ]


def _targets(client: str) -> tuple[Target, ...]:
    return tuple(
        Target(f"handshake_loss_{direction}_{nth}_{client}", "≤", BOUND_MS, "ms")
        for direction, nth in LOSSES
    )


def measure(client: str, rounds: int = ROUNDS) -> Findings:
    with deploy("xdp", PREFIX, faults=True) as place:
        assert place.lab is not None
        socket = place.lab.directory / "hop.sock"
        counters = {"op": "counters", "reset": True}
        cases = [
            {"name": name, "command": browser.tell_hop(socket, _rules(*lost), counters)}
            for name, lost in [("none", ()), *_losses() * rounds]
        ]
        options = {
            "url": f"{place.site.base_url}/",
            "browser": client,
            "cases": cases,
            "after": browser.tell_hop(socket, counters),
        }
        report = browser.run(place.site.client, "losses", options, limit_s=30 + 9 * len(cases))
    taken: dict[str, list[float]] = {}
    for case in report["cases"]:
        name, times = case["name"], case["timeline"]
        expect(times["channel"] is not None, f"{name}: never connected")
        expect(name == "none" or _dropped(case["after"]), f"{name}: no datagram was lost")
        taken.setdefault(name, []).append(round(times["channel"] - times["ice"], 1))
    return Findings(
        {
            f"handshake_loss_{direction}_{nth}_{client}": max(taken[f"{direction} {nth}"])
            for direction, nth in LOSSES
        },
        {
            "rtt_ms": 2 * ONE_WAY_S * 1e3,
            "ice_to_channel_ms": taken,
            "from_the_click": [
                {"lost": case["name"], **case["timeline"]} for case in report["cases"]
            ],
            "version": report["browser"],
        },
    )


def _losses() -> list[tuple[str, tuple[Rule, ...]]]:
    return [
        (f"{way} {nth}", (Rule(way, frozenset({Kind.DTLS}), nth=(nth,), drop=1.0),))
        for way, nth in LOSSES
    ]


def _dropped(counters: dict[str, Any]) -> int:
    return sum(counters[way].get("dtls", {}).get("dropped", 0) for way in (UP, DOWN))


def _rules(*lost: Rule) -> dict[str, Any]:
    every = (Rule(delay_s=ONE_WAY_S), *lost)
    return {
        "op": "rules",
        "rules": [dataclasses.asdict(rule) | {"kinds": sorted(rule.kinds)} for rule in every],
    }
