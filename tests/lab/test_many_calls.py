"""Thirty calls at once: one media socket, nothing lost, nothing left over."""

import time
from collections.abc import Iterator

import pytest

from tests.clients.lean_driver import LeanDriver
from tests.lab.deployment import Deployment, Place, deploy

CALLS = 30
TALK_S = 4.0


@pytest.fixture(scope="module")
def deployment(place: Place) -> Iterator[Deployment]:
    with deploy(place, "ft-", echo="opus") as deployment:
        yield deployment


def settled_descriptors(deployment: Deployment, wanted: int) -> int:
    """The transceiver's descriptors once HTTP connections of signaling have closed."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = deployment.services.transceiver.descriptors()
        if found <= wanted:
            return found
        time.sleep(0.2)
    return found


def test_thirty_calls_over_one_socket(deployment: Deployment) -> None:
    services, site = deployment.services, deployment.site
    before = services.transceiver.descriptors()
    assert services.transceiver.sockets() == 1

    options = ("--calls", str(CALLS), "--every", "0.05")
    with LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as lean:
        assert [call["error"] for call in lean.first["calls"]] == [None] * CALLS
        time.sleep(TALK_S)
        assert services.transceiver.sockets() == 1
        during = services.transceiver.descriptors()
        flows = services.flows()
        final = lean.stop()

    assert [call["lost"]["down"] for call in final["calls"]] == [0] * CALLS
    assert [call["lost"]["up"] for call in final["calls"]] == [0] * CALLS
    assert [call["echoed"]["lost"] for call in final["calls"]] == [0] * CALLS
    assert all(call["sent"] > 45 * TALK_S for call in final["calls"])
    assert sum(flow["state"] == "confirmed" for flow in flows) == CALLS
    assert len({flow["client"] for flow in flows}) == CALLS
    # calls share everything: what there is more of is signaling's connections, not media sockets
    assert during - before < CALLS / 2
    assert settled_descriptors(deployment, before) <= before
