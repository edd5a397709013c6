"""Is a client's very first Binding request answered? Twenty clients that the relay never saw.

Each has its own socket and credentials, and would send the request again after half a second
(RFC 8445 section 14.3).
"""

from tests.clients.lean_driver import LeanDriver
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab.deployment import deploy
from tests.report import Target

CALLS = 20
TARGETS = (
    Target("first_binding_answered_without_retransmission", "=", f"{CALLS} of {CALLS}", "calls"),
)


def measurements() -> list[Measurement]:
    return [Measurement("first_check", TARGETS, measure)]


def measure() -> Findings:
    options = ("--calls", str(CALLS), "--every", "0.2", "--rto", "0.5")
    with deploy("xdp", PREFIX, echo="opus") as place:
        site = place.site
        with LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as lean:
            calls = lean.first["calls"]
    failed = [call["error"] for call in calls if call["error"]]
    expect(not failed, f"{len(failed)} calls failed: {failed[:1]}")
    at_once = sum(call["first_check_sent"] == 1 for call in calls)
    return Findings(
        {"first_binding_answered_without_retransmission": f"{at_once} of {len(calls)}"},
        {
            "sent": [call["first_check_sent"] for call in calls],
            "rtt_ms": [call["rtt_ms"] for call in calls],
        },
    )
