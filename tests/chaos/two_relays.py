"""Two relays behind a router that spreads flows by their hash: one vanishes, or all flows move."""

import time

from tests.chaos.scenario import Fault, Needs, Scenario
from tests.chaos.stage import Stage
from tests.report import Target

UNNOTICED_S = 1.0  # until the router knows that a relay is gone
RESHUFFLES = 60

_NEEDS = Needs(relays=2, redis=True)


def scenarios() -> list[Scenario]:
    return [
        Scenario(
            "relay_gone",
            (
                Target("relay_gone_gap_up_max", "≤", 100, "ms"),
                Target("relay_gone_gap_down_max", "≤", 100, "ms"),
                Target("relay_gone_calls_lost", "=", 0, "calls"),
            ),
            relay_gone,
            _NEEDS,
        ),
        Scenario(
            "ecmp_reshuffled",
            (
                Target("ecmp_reshuffled_lost_share", "≤", 1, "%"),
                Target("ecmp_reshuffled_calls_lost", "=", 0, "calls"),
            ),
            ecmp_reshuffled,
            _NEEDS,
            seconds=RESHUFFLES + 2.0,
        ),
    ]


def relay_gone(stage: Stage) -> Fault:
    """The first relay's node is off the network at once; a second later the router sends all flows
    to the other one, and from then on it counts."""
    before = [len(stage.services.flows(n)) for n in (0, 1)]
    stage.lab.vanish(0)
    time.sleep(UNNOTICED_S)
    stage.lab.route_vip(1)
    moved = stage.note("route changed")
    time.sleep(5.0)
    stage.lab.return_(0)
    stage.lab.route_vip(0, 1)
    stage.note("back")
    return Fault(origin=moved, detail={"flows": before})


def ecmp_reshuffled(stage: Stage) -> Fault:
    """Each second the router hashes with another seed."""
    began = time.monotonic()
    for turn in range(RESHUFFLES):
        time.sleep(max(0.0, began + turn - time.monotonic()))
        stage.lab.reshuffle(stage.random.getrandbits(32))
    return Fault()
