"""The control plane dies in the middle of a call, and the kernel carries on."""

import time
from collections.abc import Iterator

import pytest

from tests.clients.lean_driver import LeanDriver
from tests.lab.deployment import Deployment, deploy

CALLS = 5


@pytest.fixture(scope="module")
def deployment(lab_prefix: str) -> Iterator[Deployment]:
    with deploy("xdp", lab_prefix, echo="opus") as deployment:
        yield deployment


def test_calls_survive_kill_and_restart_of_the_relay(deployment: Deployment) -> None:
    services, site = deployment.services, deployment.site
    options = ("--calls", str(CALLS))
    with LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as lean:
        time.sleep(1)
        before = services.flows()
        lean.ask("mark")
        services.relay.kill()
        time.sleep(3)  # longer than the program waits for a heartbeat
        while_dead = lean.report()["calls"]
        services.start_relay()
        time.sleep(2)
        after = services.flows()
        final = lean.stop()["calls"]

    assert [call["gap_ms"] < 800 for call in while_dead] == [True] * CALLS
    assert [call["lost"]["down"] for call in final] == [0] * CALLS
    assert [call["lost"]["up"] for call in final] == [0] * CALLS
    assert [call["gap_ms"] < 800 for call in final] == [True] * CALLS
    counted = {flow["client"]: flow["packets"]["up"] for flow in after}
    assert counted.keys() == {flow["client"] for flow in before}
    assert all(counted[flow["client"]] > flow["packets"]["up"] + 200 for flow in before)


def test_new_calls_after_the_restart(deployment: Deployment) -> None:
    site = deployment.site
    with LeanDriver.start(site.client, site.calls_url, site.client_host) as lean:
        (call,) = lean.first["calls"]
        assert call["error"] is None
        assert call["first_check_sent"] == 1
