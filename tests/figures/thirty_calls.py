"""Thirty calls at once over one media socket, and what is left of them 15 s after their end.

Left over is what the transceiver holds then beyond what it held before the first call: open
descriptors (/proc), and by its own count live calls, entries of its mux, asyncio tasks and objects
of a call that the garbage collector still finds; and the relay's flows.
"""

import time

from tests.clients.lean_driver import LeanDriver
from tests.figures import counted_transceiver
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import Lab
from tests.report import Target

CALLS = 30
TALK_S = 4.0
AFTER_S = 15.0  # flows end 10 s after the transceiver's last packet, and a sweep finds them
TARGETS = (
    Target("thirty_calls_media_sockets", "=", 1, "sockets"),
    Target("thirty_calls_left_over", "=", 0),
)

Held = dict[str, int]


def measurements() -> list[Measurement]:
    return [Measurement("thirty_calls", TARGETS, measure)]


def measure() -> Findings:
    with (
        Lab(PREFIX) as lab,
        Services(
            in_lab(lab), echo="opus", transceiver_module=counted_transceiver.MODULE
        ) as services,
    ):
        counted_transceiver.ask(services.transceiver)  # the first count imports and allocates
        before = _look(services)
        during = _talk(services)
        time.sleep(AFTER_S)
        after = _look(services)
    expect(during["calls"] == CALLS, f"the transceiver had {during['calls']} calls")
    expect(during["flows"] >= CALLS, f"the relay had {during['flows']} flows")
    sockets = [look["media_sockets"] for look in (before, during, after)]
    left = left_over(before, after)
    return Findings(
        {
            "thirty_calls_media_sockets": max(sockets, key=lambda count: abs(count - 1)),
            "thirty_calls_left_over": sum(left.values()),
        },
        {"before": before, "during": during, "after": after, "left_over": left},
    )


def left_over(before: Held, after: Held) -> Held:
    """What there is more of than before; a socket is a descriptor already."""
    return {
        name: count - before[name]
        for name, count in after.items()
        if count > before[name] and name != "media_sockets"
    }


def _talk(services: Services) -> Held:
    """Thirty whole calls; what was held in their middle."""
    site = services.site
    options = ("--calls", str(CALLS), "--every", "0.05", "--channel")
    with LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as lean:
        failed = [call["error"] for call in lean.first["calls"] if call["error"]]
        expect(not failed, f"{len(failed)} calls failed: {failed[:1]}")
        time.sleep(TALK_S)
        during = _look(services)
        lean.stop()
    return during


def _look(services: Services) -> Held:
    return {
        "media_sockets": services.transceiver.sockets(),
        **counted_transceiver.ask(services.transceiver),
        "flows": len(services.flows()),
    }
