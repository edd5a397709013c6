"""How long the returned voice is silent when the client's NAT gives it another port.

The caller speaks. The gap is the longest time between two RTP packets that the fault hop hands to
the client, so nothing of the client's own statistics is in it; pauses between moves are random.
"""

import random
import time
from functools import partial
from statistics import median
from typing import Any

from tests.browser import browser
from tests.clients.aiortc_driver import AiortcDriver
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab.deployment import Deployment, deploy
from tests.lab.hop_control import HopControl
from tests.report import Target

CLIENTS = ("chromium", "firefox", "aiortc")
MOVES = 10
SPREAD_S = 1.0  # a random part of the pause before a move
LONGEST_MS = 300
SETTLE_S = 1.5  # watched after it; a gap that lasts longer fails either way


def measurements() -> list[Measurement]:
    return [
        Measurement(f"nat_moves_{client}", _targets(client), partial(measure, client))
        for client in CLIENTS
    ]


def _targets(client: str) -> tuple[Target, ...]:
    return (
        Target(f"nat_move_gap_p50_{client}", "≤", 100, "ms"),
        Target(f"nat_move_gap_max_{client}", "≤", LONGEST_MS, "ms"),
    )


def measure(client: str, moves: int = MOVES) -> Findings:
    with deploy("xdp", PREFIX, faults=True) as place:
        report = _aiortc(place, moves) if client == "aiortc" else _browser(place, client, moves)
        call = place.services.call(report["id"]).json()
    gaps: list[float] = report["gaps"]
    expect(len(gaps) == moves, f"{len(gaps)} of {moves} moves were made")
    seen = call["moves"] >= moves or max(gaps) > LONGEST_MS  # before it saw the last one
    expect(seen, f"the transceiver saw {call['moves']} of {moves} moves")
    return Findings(
        {f"nat_move_gap_p50_{client}": median(gaps), f"nat_move_gap_max_{client}": max(gaps)},
        {**report, "transceiver": call},
    )


def _browser(place: Deployment, name: str, moves: int) -> dict[str, Any]:
    assert place.lab is not None
    socket = place.lab.directory / "hop.sock"
    counters = {"op": "counters", "reset": True}
    options = {
        "url": f"{place.site.base_url}/",
        "browser": name,
        "moves": moves,
        "command": browser.tell_hop(socket, counters, {"op": "move", "client": None}),
        "after": browser.tell_hop(socket, counters),
        "settle_s": SETTLE_S,
        "spread_ms": SPREAD_S * 1e3,
    }
    limit_s = 60 + moves * (SETTLE_S + SPREAD_S + 1)
    report = browser.run(place.site.client, "moves", options, limit_s)
    expect(report["heard"], f"{name} heard nothing before the first move")
    return {
        "id": report["end"]["call_id"],
        "gaps": [move["after"]["rtp_gap_ms"]["down"] for move in report["moves"]],
        "gaps_by_its_statistics": [move["gap_ms"] for move in report["moves"]],
        "control_gap": report["control_gap_ms"],
        "version": report["browser"],
    }


def _aiortc(place: Deployment, moves: int) -> dict[str, Any]:
    assert place.lab is not None
    hop = place.lab.hop
    with AiortcDriver.start(place.site.client, place.site.calls_url) as client:
        control = _gap(hop, move=False)
        gaps = [_gap(hop) for _ in range(moves)]
        report = client.stop()
    return {"id": report["id"], "gaps": gaps, "control_gap": control}


def _gap(hop: HopControl, *, move: bool = True) -> float:
    time.sleep(random.uniform(0, SPREAD_S))
    hop.counters(reset=True)
    if move:
        expect(hop.move(), "the NAT knew no client to move")
    time.sleep(SETTLE_S)
    gap: float = hop.counters()["rtp_gap_ms"]["down"]
    return gap
