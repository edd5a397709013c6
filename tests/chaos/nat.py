"""The NAT in front of all callers gives each of them another public port, again and again."""

import time
from functools import partial
from itertools import pairwise
from statistics import median

from tests.chaos.account import Caller, Window, account
from tests.chaos.relays import CHECK_INTERVAL_MS
from tests.chaos.scenario import Fault, Needs, Scenario
from tests.chaos.stage import Stage
from tests.clients.lean_driver import LeanDriver
from tests.figures import nat_moves
from tests.figures.measurement import Findings, Measurement
from tests.lab.deployment import deploy
from tests.report import Target

PREFIX = "ch-"

EVERY_S = 2.0
MOVES = 10
OFTEN_S = 0.2
OFTEN_MOVES = 50
SETTLE_S = 3.0
SILENT_MOVES = 5
SILENT_EVERY_S = 8.0  # a NAT that moves again before the next check leaves nobody a chance
_NEEDS = Needs(hop=True, page_recovers=False)
_SPEAKS = Needs(hop=True, agent="speaks", page_recovers=False)
# The lean client counts its interval from the last answer and looks each 20 ms; and after the check
# the transceiver's has to come and go.
_ROUND_TRIPS_MS = 50


def scenarios() -> list[Scenario]:
    """All callers behind one address, all at the same moment: what a NAT does that is restarted."""
    return [
        Scenario(
            "nat_moves_together", (_no_call("nat_moves_together"),), nat_moves_together, _NEEDS
        ),
        Scenario(
            "nat_moves_silent",
            (
                *(
                    _gap("nat_moves_silent", f"down_max_{kind}", interval + _ROUND_TRIPS_MS)
                    for kind, interval in CHECK_INTERVAL_MS.items()
                ),
                _no_call("nat_moves_silent"),
            ),
            nat_moves_silent,
            _SPEAKS,
        ),
        Scenario(
            "nat_moves_silent_fast",
            (_no_call("nat_moves_silent_fast"),),
            nat_moves_silent_fast,
            _SPEAKS,
        ),
        Scenario(
            "nat_moves_often_together",
            (_no_call("nat_moves_often_together"),),
            nat_moves_often_together,
            _NEEDS,
        ),
    ]


def measurements() -> list[Measurement]:
    """One caller at its address."""
    return [
        *(
            Measurement(f"nat_moves_{client}", _speaking(client), partial(speaking, client))
            for client in nat_moves.CLIENTS
        ),
        Measurement(
            "nat_moves_often",
            (Target("nat_moves_often_through", "≥", 50, "%"), _no_call("nat_moves_often")),
            often,
        ),
    ]


def _speaking(client: str) -> tuple[Target, ...]:
    return _gap(f"nat_moves_{client}", "p50", 100), _gap(f"nat_moves_{client}", "max", 300)


def _no_call(name: str) -> Target:
    return Target(f"{name}_calls_lost", "=", 0, "calls")


def speaking(client: str) -> Findings:
    """Every 2 s or so, at a random moment; the caller speaks. Gaps down, as the hop hands them to
    the client. See `tests.figures.nat_moves`, which has a control run too."""
    found = nat_moves.measure(client, MOVES)
    values = {
        f"nat_moves_{client}_gap_{which}": found.values[f"nat_move_gap_{which}_{client}"]
        for which in ("p50", "max")
    }
    return Findings(values, found.detail)


def often(prefix: str = PREFIX) -> Findings:
    """Every 200 ms, a lean caller that speaks; `through` is the share of its packets that come
    back. The control run is the same time before."""
    with deploy("xdp", prefix, echo="opus", faults=True) as place:
        assert place.lab is not None
        site, hop = place.site, place.lab.hop
        with LeanDriver.start(site.client, site.calls_url, site.client_host) as driver:
            looks = [driver.report()["calls"][0]]
            time.sleep(OFTEN_MOVES * OFTEN_S)
            looks.append(driver.report()["calls"][0])
            for _ in range(OFTEN_MOVES):
                hop.move()
                time.sleep(OFTEN_S)
            looks.append(driver.report()["calls"][0])
            time.sleep(SETTLE_S)
            looks.append(driver.report()["calls"][0])
    sent, came = (
        [after[what] - before[what] for before, after in pairwise(looks)]
        for what in ("sent", "received")
    )
    return Findings(
        {
            "nat_moves_often_through": round(100 * came[1] / sent[1], 1),
            "nat_moves_often_calls_lost": int(came[2] < sent[2] / 2),
        },
        {"sent": sent, "received": came},
    )


def _gap(name: str, column: str, bound: float) -> Target:
    return Target(f"{name}_gap_{column}", "≤", bound, "ms")


def nat_moves_together(stage: Stage) -> Fault:
    """Every 2 s; the callers speak. A gap is the longest of one call after one move, and the
    figures are over all moves of all calls; the usual 20 ms between two packets are in it."""
    moments = _move(stage, MOVES, EVERY_S)
    callers = _callers(stage)
    gaps: dict[str, list[float]] = {"up": [], "down": []}
    for moved in moments:
        for each in account(callers, stage.tap.seen, Window(moved, moved + EVERY_S)):
            gaps["up"].append(round(1e3 * each.up.gap_s, 1))
            gaps["down"].append(round(1e3 * each.down.gap_s, 1))
    values = {f"gap_{way}_p50": median(found) for way, found in gaps.items()}
    return Fault(values=values | {f"gap_{way}_max": max(found) for way, found in gaps.items()})


def nat_moves_silent(stage: Stage) -> Fault:
    """Every 8 s; nobody speaks, neither RTP nor RTCP of a speaker goes up. Lean clients send their
    checks alone; browsers too, with the track taken from its sender (a muted track would still
    send). Only the client's own check tells the new address."""
    return _move_silently(stage, SILENT_MOVES, SILENT_EVERY_S)


def nat_moves_silent_fast(stage: Stage) -> Fault:
    """Every 2 s, which is sooner than clients check: what is told lasts until a check that no
    further move overtakes."""
    return _move_silently(stage, MOVES, EVERY_S)


def _move_silently(stage: Stage, times: int, every_s: float) -> Fault:
    stage.callers.mute()
    try:
        _move(stage, times, every_s)
        time.sleep(max(CHECK_INTERVAL_MS.values()) / 1e3)
    finally:
        stage.callers.unmute()
    return Fault()


def nat_moves_often_together(stage: Stage) -> Fault:
    """Every 200 ms, so that hardly one path lives as long as its checks take."""
    _move(stage, OFTEN_MOVES, OFTEN_S)
    return Fault()


def _move(stage: Stage, times: int, every_s: float) -> list[float]:
    began = time.monotonic()
    moments = []
    for turn in range(times):
        time.sleep(max(0.0, began + turn * every_s - time.monotonic()))
        moments.append(time.monotonic())
        stage.lab.hop.move()
    time.sleep(max(0.0, began + times * every_s - time.monotonic()))
    return moments


def _callers(stage: Stage) -> list[Caller]:
    pairs = stage.tap.pairs()
    return [
        Caller(kind, ssrc, pairs[ssrc])
        for ssrc, kind in stage.callers.kinds().items()
        if ssrc in pairs
    ]
