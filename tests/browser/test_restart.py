"""An ICE restart keeps the call, with new credentials on both sides."""

from itertools import pairwise

from tests.browser import browser
from tests.lab.node import Node
from tests.lab.services import Services

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
