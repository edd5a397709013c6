"""A client's port changes and it goes on with media alone, as behind a NAT that forgot it.

The relay knows whose the SSRC is and shows the packet to that call's transceiver, which checks the
new address. Somebody who invents SSRCs gets nothing, and nobody else loses anything.
"""

import time
from functools import partial
from statistics import median

from relayctl.reason import Reason
from tests.clients.lean_driver import LeanDriver
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab import relay_counts
from tests.report import Target
from tests.siege import flood
from tests.siege.flood import Flood
from tests.siege.stage import ATTACKERS_END, lost, stage, talk

MOVES = 10
FLOOD_S = 4.0
SWEEP_S = 2.5  # until the relay knows whose an SSRC is
HEALED_MS = 1000
MOVE = (
    Target("hint_healed", "=", MOVES, "moves"),
    Target("hint_gap_p50", "≤", 100, "ms"),
    Target("hint_gap_max", "≤", 300, "ms"),
)
FLOOD = (
    Target("ssrc_flood_lost", "=", 0, "packets"),
    Target("ssrc_flood_misled", "=", 0, "hints"),
)

_WATCHED_S = 1.2


def measurements(quick: bool) -> list[Measurement]:
    return [
        Measurement("hint", MOVE, partial(move, MOVES)),
        Measurement("ssrc_flood", FLOOD, partial(invent, FLOOD_S)),
    ]


def move(moves: int) -> Findings:
    with stage() as scene, scene.calls(1) as lean:
        before = relay_counts.settled(scene.services)
        gaps = [_gap(lean) for _ in range(moves)]
        counted = relay_counts.settled(scene.services).since(before)
        call = scene.services.call(lean.first["calls"][0]["id"]).json()
    hints = counted.reasons[Reason.SLOW_HINT]
    expect(hints, "no packet went by its SSRC: the client healed itself")
    return Findings(
        {
            "hint_healed": sum(gap < HEALED_MS for gap in gaps),
            "hint_gap_p50": median(gaps),
            "hint_gap_max": max(gaps),
        },
        {"gaps_ms": gaps, "hints": hints, "moves": call["moves"], "counted": counted.nonzero()},
    )


def invent(seconds: float) -> Findings:
    """A flood of RTP whose SSRCs are chance; meanwhile one call moves, the others go on."""
    with stage() as scene, scene.calls() as lean:
        shapes = flood.sources_of_rtp(scene.macs, scene.site.vip)
        with Flood(scene.attacker, ATTACKERS_END, shapes) as attack:
            before = relay_counts.settled(scene.services)
            with attack.going_on() as sent:
                time.sleep(seconds)
            counted = relay_counts.settled(scene.services).since(before)
            harm = lost(lean)
            with attack.going_on():
                gap = _gap(lean)
        heard = talk(lean)
    expect(counted.reasons[Reason.PUNT_ORPHAN], "none came as far as the packet process")
    return Findings(
        {"ssrc_flood_lost": sum(harm.values()), "ssrc_flood_misled": _hints(counted)},
        {"flood_packets": sent[0].frames, "flood_rate": round(sent[0].rate), "lost": harm}
        | {"gap_of_a_move_meanwhile_ms": gap, "talk": heard, "counted": counted.nonzero()},
    )


def _gap(lean: LeanDriver) -> float:
    """How long the first call heard nothing, in milliseconds, when its port changed."""
    time.sleep(SWEEP_S)
    lean.ask("mark", [0])
    lean.ask("move", [0])
    time.sleep(_WATCHED_S)
    gap: float = lean.report()["calls"][0]["gap_ms"]
    return gap


def _hints(counted: relay_counts.RelayCounts) -> int:
    return counted.reasons[Reason.SLOW_HINT] + counted.reasons[Reason.SLOW_HINT_BUDGET]
