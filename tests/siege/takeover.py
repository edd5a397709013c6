"""Who gets a live flow: a client that begins a call elsewhere does, at once; a thief who sends in
its name does not, whatever tokens he has.

The thief has calls of his own at another transceiver, and so route tokens and passwords that are
good there. He sees nothing that comes to his victim, so he guesses its answers.
"""

import itertools
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median

from relayctl.datapath.xdp import XdpDatapath
from relayctl.flow import FlowKey
from relayctl.reason import Reason
from relayctl.wire.address import Address, parse, render
from tests.figures.measurement import Findings, Measurement, expect
from tests.kernel.packets import frame
from tests.lab import relay_counts
from tests.lab.hostile import binding_request
from tests.lab.service_config import Datapath
from tests.lab.services import Services
from tests.report import Target
from tests.siege.ice_call import IceCall
from tests.siege.stage import ATTACKERS_END, Stage, lost, stage, talk

TRIES, REUSES = 1000, 100
THIEFS_CALLS = 12
DATAPATHS: tuple[Datapath, ...] = ("xdp", "socket")
REUSE = (
    Target("port_reuse_repointed", "=", REUSES, "of 100"),
    Target("port_reuse_p50", "≤", 10, "ms"),
)

_RATE = 100.0  # tries a second: below what the relay lets pass of one token
_SUCCESS = 0x0101
_VIP = 1
_PATIENCE_S = 2.0


def measurements(quick: bool) -> list[Measurement]:
    tries = 100 if quick else TRIES
    spoofed = [
        Measurement(f"takeover_spoofed_{each}", targets(each), partial(spoof, each, tries))
        for each in DATAPATHS
    ]
    return [*spoofed, Measurement("port_reuse", REUSE, partial(reuse, REUSES))]


def targets(datapath: Datapath) -> tuple[Target, ...]:
    return (
        Target(f"takeover_spoofed_succeeded_{datapath}", "=", 0, "tries"),
        Target(f"takeover_victim_lost_{datapath}", "=", 0, "packets"),
    )


def spoof(datapath: Datapath, tries: int) -> Findings:
    with (
        stage(datapath, transceivers=2) as scene,
        scene.second() as other,
        scene.calls(1) as lean,
        _calls(scene, other, THIEFS_CALLS) as thief,
    ):
        victim = _client_of(scene, lean.first["calls"][0]["id"])
        before = relay_counts.settled(scene.services)
        _steal(scene, thief, victim, tries)
        counted = relay_counts.settled(scene.services).since(before)
        harm = lost(lean)
        heard = talk(lean)
        owner = next(f for f in scene.services.flows() if f["client"] == render(victim))["endpoint"]
    taken = counted.reasons[Reason.SLOW_TAKEOVER]
    checks = counted.reasons[Reason.SLOW_TAKEOVER_CHECK]
    succeeded = counted.reasons[Reason.SLOW_REPOINTED]
    came = taken >= tries * 0.9 and checks
    expect(succeeded or came, f"the other endpoint got {taken} requests and sent {checks} checks")
    kept = owner == render(scene.site.endpoint)
    expect(kept or succeeded, f"nobody took the flow over, and it is {owner}'s")
    return Findings(
        {
            f"takeover_spoofed_succeeded_{datapath}": succeeded,
            f"takeover_victim_lost_{datapath}": sum(harm.values()),
        },
        {"tries": tries, "owner": owner, "counted": counted.nonzero(), "lost": harm, "talk": heard},
    )


def reuse(tries: int) -> Findings:
    """One socket, one call after the other, each at the other transceiver than the one before. The
    old call is gone before every second one."""
    with (
        stage(transceivers=2) as scene,
        scene.second() as other,
        scene.datapath() as datapath,
        scene.site.client.udp(scene.site.client_host) as sock,
    ):
        client: Address = sock.getsockname()
        places = itertools.cycle((scene.services, other))
        old = IceCall(scene.site.client, other.site.calls_url, client)
        points = partial(_points, datapath, client, other)
        expect(old.run(sock, points, _PATIENCE_S) < _PATIENCE_S, "the first call has no flow")
        took = []
        for number, place in zip(range(tries), places, strict=False):
            if number % 2:
                old.hang_up()
            call = IceCall(scene.site.client, place.site.calls_url, client)
            took.append(call.run(sock, partial(_points, datapath, client, place), _PATIENCE_S))
            if not number % 2:
                old.hang_up()
            old = call
        old.hang_up()
        reasons = relay_counts.settled(scene.services).nonzero()
    repointed = [round(seconds * 1e3, 2) for seconds in took if seconds < _PATIENCE_S]
    return Findings(
        {
            "port_reuse_repointed": len(repointed),
            "port_reuse_p50": median(repointed) if repointed else None,
        },
        {"took_ms": sorted(repointed), "counted": reasons},
    )


@contextmanager
def _calls(scene: Stage, place: Services, count: int) -> Iterator[list[IceCall]]:
    with ExitStack() as stack:
        calls = []
        for _ in range(count):
            address = scene.site.client_host, 9
            call = IceCall(scene.site.client, place.site.calls_url, address)
            stack.callback(call.hang_up)
            calls.append(call)
        yield calls


def _steal(scene: Stage, thief: list[IceCall], victim: Address, tries: int) -> None:
    chance = random.Random(1)
    with scene.attacker.capture(ATTACKERS_END) as wire:
        for _, call in zip(range(tries), itertools.cycle(thief), strict=False):
            guess = binding_request(chance, call.token + b":abcd", kind=_SUCCESS)
            for payload in (call.request(), guess):
                wire.send(frame(victim, scene.site.vip, payload, macs=scene.macs))
            time.sleep(1 / _RATE)


def _client_of(scene: Stage, call: str) -> Address:
    return parse(scene.services.call(call).json()["client"])


def _points(datapath: XdpDatapath, client: Address, place: Services) -> bool:
    """Whether the client's flow is that of the transceiver at `place`."""
    flow = datapath.flows.get(FlowKey(client, _VIP))
    return flow is not None and flow.endpoint == place.site.endpoint
