"""The daemon is killed and started again while forged tokens come at the full rate: the program in
the kernel goes on, and the new daemon takes its maps over."""

import time

from relayctl.flow import FlowKey
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab import relay_counts
from tests.report import Target
from tests.siege import flood
from tests.siege.flood import Flood
from tests.siege.newcomers import Echo, Newcomers
from tests.siege.stage import ATTACKERS_END, CALLS, Stage, lost, stage, talk

NEWCOMERS = 20
DEAD_S = 3.0  # longer than the program waits for a heartbeat
TARGETS = (
    Target("daemon_killed_lost", "=", 0, "packets"),
    Target("daemon_killed_flows_kept", "=", CALLS, "flows"),
    Target("daemon_killed_connected", "=", NEWCOMERS, "newcomers"),
)


def measurements(quick: bool) -> list[Measurement]:
    return [Measurement("daemon_killed", TARGETS, measure)]


def measure() -> Findings:
    with stage() as scene, scene.calls() as lean:
        services = scene.services
        shapes = flood.forged(scene.macs, scene.site.vip)
        born = _born(scene)
        expect(len(born) == CALLS, f"{len(born)} flows of {CALLS} calls")
        with Flood(scene.attacker, ATTACKERS_END, shapes) as attack:
            before = relay_counts.RelayCounts.read(services)
            with attack.going_on() as sent:
                time.sleep(0.5)
                services.relay.kill()
                time.sleep(DEAD_S)
                services.start_relay()
                connected = _connect(scene, NEWCOMERS)
            counted = relay_counts.RelayCounts.read(services).since(before)
        kept = born.items() & _born(scene).items()
        harm = lost(lean)
        heard = talk(lean)
    return Findings(
        {
            "daemon_killed_lost": sum(harm.values()),
            "daemon_killed_flows_kept": len(kept),
            "daemon_killed_connected": connected,
        },
        {"flood_packets": sent[0].frames, "flood_rate": round(sent[0].rate), "lost": harm}
        | {"talk": heard, "counted": counted.nonzero()},
    )


def _born(scene: Stage) -> dict[FlowKey, int]:
    """Stamps of the flows in the maps: a flow that was made anew has another."""
    with scene.datapath() as datapath:
        return {key: flow.born for key, flow in datapath.flows.items()}


def _connect(scene: Stage, count: int) -> int:
    echo = Echo(scene.site.transceiver, scene.site.endpoint[0])
    with echo, Newcomers(scene.site, scene.services.setup.key, echo.address, count) as them:
        return len(them.connect())
