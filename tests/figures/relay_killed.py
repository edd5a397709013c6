"""The relay's control process is killed in the middle of six calls and started again 3 s later.

Losses are by RTP sequence number at both ends. A flow is kept if the same entry is there before,
while no daemon runs, and after, and counts packets all the way: then nobody but the program in the
kernel can have carried them.
"""

import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tests.clients.aiortc_driver import AiortcDriver
from tests.clients.lean_driver import LeanDriver
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab.deployment import deploy
from tests.lab.services import Services
from tests.report import Target

LEAN_CALLS = 5
DEAD_S = 3.0  # longer than the program waits for a heartbeat
AFTER_S = 3.0
TARGETS = (
    Target("daemon_kill_lost_up", "=", 0, "packets"),
    Target("daemon_kill_lost_down", "=", 0, "packets"),
    Target("daemon_kill_flow_kept", "=", True),
)

Flows = dict[str, dict[str, Any]]  # by client


def measurements() -> list[Measurement]:
    return [Measurement("daemon_kill", TARGETS, measure)]


def measure() -> Findings:
    options = ("--calls", str(LEAN_CALLS))
    with deploy("xdp", PREFIX, echo="opus") as place:
        site, services = place.site, place.services
        with (
            LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as lean,
            AiortcDriver.start(site.client, site.calls_url) as aiortc,
        ):
            looks = _kill_and_restart(services)
            lost = _lost(lean.stop()["calls"], aiortc.stop())
    return Findings(
        {
            "daemon_kill_lost_up": sum(call["up"] for call in lost),
            "daemon_kill_lost_down": sum(call["down"] for call in lost),
            "daemon_kill_flow_kept": kept(looks),
        },
        {"lost": lost, "flows": looks},
    )


def _kill_and_restart(services: Services) -> list[Flows]:
    """The flow table before, twice while no daemon runs, and after."""
    time.sleep(1)
    looks = [_flows(services.flows)]
    expect(len(looks[0]) == LEAN_CALLS + 1, f"{len(looks[0])} flows before the kill")
    services.relay.kill()
    killed = time.monotonic()
    for until in (DEAD_S / 2, DEAD_S):
        looks.append(_flows(lambda: _pinned(services)))
        time.sleep(max(0.0, killed + until - time.monotonic()))
    services.start_relay()
    time.sleep(AFTER_S)
    return [*looks, _flows(services.flows)]


def _pinned(services: Services) -> list[dict[str, Any]]:
    """The flow table as the maps have it, without a daemon."""
    flows: list[dict[str, Any]] = json.loads(
        services.relayctl("flows", "list", "-o", "json").stdout
    )
    return flows


def _flows(read: Callable[[], list[dict[str, Any]]]) -> Flows:
    return {flow["client"]: flow for flow in read()}


def kept(looks: list[Flows]) -> bool:
    """The same flows in every look, each with more packets than in the look before."""
    return all(
        before.keys() == after.keys()
        and all(_went_on(before[client], after[client]) for client in before)
        for before, after in pairwise(looks)
    )


def _went_on(before: dict[str, Any], after: dict[str, Any]) -> bool:
    same = all(before[name] == after[name] for name in ("endpoint", "vip", "state", "ssrc"))
    grew = all(after["packets"][way] > before["packets"][way] for way in ("up", "down"))
    return same and grew and after["age_s"] >= before["age_s"]


def _lost(lean: list[dict[str, Any]], aiortc: dict[str, Any]) -> list[dict[str, int]]:
    far, ours = aiortc["call"]["packets"], aiortc["packets"]
    return [
        *({"up": call["lost"]["up"], "down": call["lost"]["down"]} for call in lean),
        {
            "up": max(aiortc["call"]["lost"], ours["sent"] - far["up"]),
            "down": max(ours["lost"], far["down"] - ours["received"]),
        },
    ]
