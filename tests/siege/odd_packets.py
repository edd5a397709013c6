"""Fragments, IP options and times to live of 1 at the VIP: the kernel would reassemble and deliver
them, so each takes one unit of a small budget on its way to user space."""

import math
import time
from functools import partial

from relayctl.flow import units
from relayctl.reason import Reason
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab import relay_counts
from tests.report import Target
from tests.siege import flood
from tests.siege.flood import Flood
from tests.siege.stage import ATTACKERS_END, lost, stage, talk

COUNT = 100_000
BUDGET = 200  # per unit and CPU; the flood comes in on one CPU
TARGETS = (
    Target("odd_packets_read", "≤", BUDGET, "packets a unit"),
    Target("odd_packets_lost", "=", 0, "packets"),
)

_RATE = 50_000.0


def measurements(quick: bool) -> list[Measurement]:
    count = 20_000 if quick else COUNT
    return [Measurement("odd_packets", TARGETS, partial(measure, count))]


def measure(count: int) -> Findings:
    with stage() as scene, scene.calls(1) as lean:
        shapes = flood.odd(scene.macs, scene.site.vip)
        with Flood(scene.attacker, ATTACKERS_END, shapes) as attack:
            before = relay_counts.settled(scene.services)
            began = _unit()
            sent = attack.send(count=count, rate=_RATE)
            took = _unit() - began + 1
            counted = relay_counts.settled(scene.services).since(before)
        harm = lost(lean)
        heard = talk(lean)
    odd = (Reason.PUNT_ODD, Reason.DROP_ODD_BUDGET)
    seen = counted.total(odd)
    expect(seen == sent.frames, f"the relay saw {seen} of {sent.frames} packets")
    expect(counted.received, "none came as far as the packet process")
    read = counted.received + counted.socket_drops
    return Findings(
        {"odd_packets_read": math.ceil(read / took), "odd_packets_lost": sum(harm.values())},
        {"sent": sent.frames, "units": took, "read": read, "counted": counted.nonzero()}
        | {"lost": harm, "talk": heard},
    )


def _unit() -> int:
    return units(time.monotonic_ns())
