"""Calls that begin while a fault lasts."""

import time

from tests.chaos.stage import Stage
from tests.clients.lean_driver import LeanDriver

CALLS = 3
SPOKEN_S = 1.0


def failed(stage: Stage, calls: int = CALLS) -> list[str]:
    """Why those of `calls` new ones failed that do not come up, or hear nothing of their own
    voice."""
    site = stage.site
    options = ("--calls", str(calls), "--every", "0.1")
    with LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as driver:
        time.sleep(SPOKEN_S)
        report = driver.stop()
    stage.note("new calls made")
    return [
        call["error"] or "heard nothing"
        for call in report["calls"]
        if call["error"] or not call["echoed"]["received"]
    ]
