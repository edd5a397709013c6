"""The client's NAT gives it another port in the middle of a call."""

from statistics import median

from tests.browser import browser
from tests.lab.services import Services
from tests.lab.topology import Lab

MOVES = 3


def test_a_new_mapping_is_a_short_gap(lab: Lab, services: Services, browser_name: str) -> None:
    """The caller speaks: the first packet from the new address brings the voice back."""
    socket = lab.directory / "hop.sock"
    counters = {"op": "counters", "reset": True}
    options = {
        "url": f"{services.site.base_url}/",
        "browser": browser_name,
        "moves": MOVES,
        "command": browser.tell_hop(socket, counters, {"op": "move", "client": None}),
        "after": browser.tell_hop(socket, counters),
        "settle_s": 2,
        "spread_ms": 1000,
    }
    report = browser.run(services.site.client, "moves", options, limit_s=60)
    gaps = [move["after"]["rtp_gap_ms"]["down"] for move in report["moves"]]
    assert report["heard"]
    assert median(gaps) <= 500, report["moves"]
    assert report["end"]["connection"] == "connected"
    assert report["end"]["received"] >= 0.9 * report["end"]["sent"]
