"""An ICE restart keeps the call, with new credentials on both sides."""

from itertools import pairwise

import pytest

from tests.browser import browser
from tests.lab.frame import MEDIA
from tests.lab.node import Node
from tests.lab.services import Services
from tests.lab.topology import Lab

RESTARTS = 2


def datagrams_for_closed_ports(node: Node) -> int:
    """How many reached `node` and found nobody (RFC 4113: udpNoPorts)."""
    rows = node.run(["cat", "/proc/net/snmp"]).stdout.splitlines()
    names, values = (row.split() for row in rows if row.startswith("Udp: "))
    return int(values[names.index("NoPorts")])


def test_restarts_renew_the_credentials_and_lose_nothing(
    services: Services, browser_name: str
) -> None:
    """Firefox restarts with a new socket and closes the old one: what was under way to that one
    arrives and finds nobody, or waits there unread. That is no loss of ours."""
    client = services.site.client
    closed = datagrams_for_closed_ports(client)
    options = {"url": f"{services.site.base_url}/", "browser": browser_name, "restarts": RESTARTS}
    report = browser.run(client, "restart", options, limit_s=60)
    closed = datagrams_for_closed_ports(client) - closed
    assert report["heard"]
    for before, after in pairwise(report["looks"]):
        assert after["ufrags"]["ours"] != before["ufrags"]["ours"]
        assert after["ufrags"]["theirs"] != before["ufrags"]["theirs"]
        assert after["call_id"] == before["call_id"]
        assert after["received"] - before["received"] > 100  # of 150 in 3 s
        assert after["connection"] == "connected"
    end = report["looks"][-1]
    assert end["far"]["lost"] == 0
    assert end["lost"] <= (closed + RESTARTS if browser_name == "firefox" else 0)


@pytest.mark.parametrize("browser_name", ["chromium"], indirect=True)
def test_a_lost_path_is_mended_without_being_asked(
    lab: Lab, services: Services, browser_name: str
) -> None:
    socket = lab.directory / "hop.sock"
    everything = {"kinds": sorted(MEDIA), "nth": [], "drop": 1.0}
    options = {
        "url": f"{services.site.base_url}/",
        "browser": browser_name,
        "lose": browser.tell_hop(socket, {"op": "rules", "rules": [everything]}),
        "find": browser.tell_hop(socket, {"op": "rules", "rules": []}),
    }
    report = browser.run(services.site.client, "lost_path", options, limit_s=60)
    before, after = report["before"], report["after"]
    assert report["heard"]
    assert report["faults"] == []
    assert "inding another" in report["meanwhile"]["status"]  # it says what it is doing
    assert after["call_id"] == before["call_id"]
    assert after["ufrag"] != before["ufrag"]
    assert after["stats"]["restarts"] >= 1
    assert after["status"].startswith("Connected again after ")
    assert {"page.recovering", "page.restart"} <= set(after["types"])
