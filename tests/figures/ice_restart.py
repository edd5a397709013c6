"""RTP packets that an ICE restart costs: both ways, by sequence number, two restarts a call."""

from functools import partial
from itertools import pairwise
from typing import Any

from tests.browser import browser
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab.deployment import deploy
from tests.report import Target

CLIENTS = ("chromium", "firefox")
RESTARTS = 2


def measurements() -> list[Measurement]:
    return [
        Measurement(f"ice_restart_{client}", (_target(client),), partial(measure, client))
        for client in CLIENTS
    ]


def _target(client: str) -> Target:
    return Target(f"ice_restart_lost_{client}", "=", 0, "packets")


def measure(client: str) -> Findings:
    with deploy("xdp", PREFIX) as place:
        options = {"url": f"{place.site.base_url}/", "browser": client, "restarts": RESTARTS}
        report = browser.run(place.site.client, "restart", options, limit_s=60)
        call = place.services.call(report["looks"][-1]["call_id"]).json()
    expect(report["heard"], f"{client} heard nothing")
    looks: list[dict[str, Any]] = report["looks"]
    for before, after in pairwise(looks):
        for whose in ("ours", "theirs"):
            renewed = before["ufrags"][whose] != after["ufrags"][whose]
            expect(renewed, f"a restart left {whose} ufrag as it was")
        expect(after["received"] - before["received"] > 100, "the voice did not go on")
    down, up = looks[-1]["lost"], call["lost"]
    return Findings(
        {f"ice_restart_lost_{client}": down + up},
        {"restarts": RESTARTS, "lost": {"down": down, "up": up}, "transceiver": call},
    )
