"""Floods at the VIP at the generator's full rate: nobody who talks loses a packet, and whoever
begins is answered within a second."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from relayctl.datapath.xdp import XdpDatapath
from relayctl.flow import VALUE
from relayctl.packet.token_flows import MAX_FLOWS
from relayctl.reason import Reason
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab import relay_counts
from tests.lab.relay_counts import RelayCounts
from tests.lab.victim import spy_on
from tests.report import Target
from tests.siege import flood
from tests.siege.flood import Flood
from tests.siege.newcomers import Echo, Newcomers
from tests.siege.stage import ATTACKERS_END, Stage, lost, stage, talk

NEWCOMERS = 100
BEFORE_S, AFTER_S = 1.0, 1.0  # of flood, around the newcomers
LOOK_S = 0.05  # between two looks at the flow table
FORGED = (
    Target("forged_flood_lost", "=", 0, "packets"),
    Target("forged_flood_connected", "=", NEWCOMERS, "newcomers"),
    Target("forged_flood_read", "=", 0, "forged tokens"),
)
TOKEN = (
    Target("token_flood_lost", "=", 0, "packets"),
    Target("token_flood_connected", "=", NEWCOMERS, "newcomers"),
    Target("token_flood_flows", "≤", MAX_FLOWS, "flows of the token"),
)


def measurements(quick: bool) -> list[Measurement]:
    return [
        Measurement("forged_flood", FORGED, partial(forged, NEWCOMERS)),
        Measurement("token_flood", TOKEN, partial(one_token, NEWCOMERS)),
    ]


def forged(newcomers: int) -> Findings:
    """Forged tokens, one half, and random datagrams, the other, from a million sources."""
    with stage() as scene, scene.calls() as lean:
        shapes = flood.forged(scene.macs, scene.site.vip)
        with Flood(scene.attacker, ATTACKERS_END, shapes) as attack:
            detail = _flooded(scene, attack, newcomers)
        harm = lost(lean)
        heard = talk(lean)
    return Findings(
        {
            "forged_flood_lost": sum(harm.values()),
            "forged_flood_connected": len(detail["connected_ms"]),
            "forged_flood_read": detail["counted"].get(Reason.SLOW_FORGED.label, 0),
        },
        {"lost": harm, "talk": heard, **detail},
    )


def one_token(newcomers: int) -> Findings:
    """The first packet of a caller, sent again in the name of a million others."""
    with (
        stage() as scene,
        spy_on(scene.deployment) as caller,
        scene.calls() as lean,
        scene.datapath() as datapath,
    ):
        shapes = flood.copies(scene.macs, scene.site.vip, caller.check)
        with (
            Flood(scene.attacker, ATTACKERS_END, shapes) as attack,
            _watch(datapath, caller.token[:8]) as crowds,
        ):
            detail = _flooded(scene, attack, newcomers)
        harm = {"others": lost(lean), "caller": lost(caller.lean)}
        heard = talk(lean)
    return Findings(
        {
            "token_flood_lost": sum(sum(ways.values()) for ways in harm.values()),
            "token_flood_connected": len(detail["connected_ms"]),
            "token_flood_flows": max(crowds),
        },
        {"lost": harm, "talk": heard, "looks": len(crowds), "flows_last": crowds[-1], **detail},
    )


def _flooded(scene: Stage, attack: Flood, newcomers: int) -> dict[str, Any]:
    """Newcomers in the middle of a flood."""
    echo = Echo(scene.site.transceiver, scene.site.endpoint[0])
    with echo, Newcomers(scene.site, scene.services.setup.key, echo.address, newcomers) as them:
        before = RelayCounts.read(scene.services)
        with attack.going_on() as sent:
            time.sleep(BEFORE_S)
            connected = them.connect()
            time.sleep(AFTER_S)
        counted = RelayCounts.read(scene.services).since(before)
    (flooded,) = sent
    program = counted.total(relay_counts.PROGRAM)
    expect(program >= flooded.frames, f"the relay saw {program} of {flooded.frames} packets")
    return {
        "flood_packets": flooded.frames,
        "flood_rate": round(flooded.rate),
        "connected_ms": sorted(connected),
        "counted": counted.nonzero(),
        "read_by_the_packet_process": counted.received,
    }


@contextmanager
def _watch(datapath: XdpDatapath, token: bytes) -> Iterator[list[int]]:
    """How many flows bear the token, looked at again and again."""
    counts: list[int] = []
    ended = threading.Event()

    def look() -> None:
        while True:
            counts.append(_crowd(datapath, token))
            if ended.wait(LOOK_S):
                return

    thread = threading.Thread(target=look, name="watch")
    thread.start()
    try:
        yield counts
    finally:
        ended.set()
        thread.join()


def _crowd(datapath: XdpDatapath, token: bytes) -> int:
    """Flow values begin with the token's first characters."""
    return sum(
        values[at : at + len(token)] == token
        for _, values in datapath.flows.batches()
        for at in range(0, len(values), VALUE.size)
    )
