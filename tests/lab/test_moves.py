"""The client's address changes, or its credentials: the call goes on."""

import time
from collections.abc import Iterator

import pytest

from tests.clients.lean_driver import LeanDriver
from tests.lab.deployment import Deployment, Place, deploy
from tests.lab.topology import Lab

# Without its cure each of these takes over a second; `make figures` measures them.
HEALED_MS = 800


@pytest.fixture(scope="module", params=["xdp", "socket"])
def deployment(request: pytest.FixtureRequest, lab_prefix: str) -> Iterator[Deployment]:
    place: Place = request.param
    with deploy(place, lab_prefix, echo="opus", faults=True) as deployment:
        yield deployment


@pytest.fixture
def lab(deployment: Deployment) -> Lab:
    assert deployment.lab is not None
    return deployment.lab


@pytest.fixture
def lean(deployment: Deployment) -> Iterator[LeanDriver]:
    site = deployment.site
    with LeanDriver.start(site.client, site.calls_url, site.client_host) as lean:
        assert lean.first["calls"][0]["error"] is None
        time.sleep(1)
        yield lean


def test_nat_rebinding_while_speaking(deployment: Deployment, lab: Lab, lean: LeanDriver) -> None:
    gaps = []
    for _ in range(5):
        lean.ask("mark")
        assert lab.hop.move() >= 1
        time.sleep(1.5)
        gaps.append(lean.report()["calls"][0]["gap_ms"])
    gaps.sort()
    assert gaps[2] <= HEALED_MS, gaps
    call = deployment.services.call(lean.first["calls"][0]["id"]).json()
    assert call["moves"] == 5


def test_nat_rebinding_while_silent(lab: Lab, lean: LeanDriver) -> None:
    """Nothing but the client's next check tells of it."""
    lean.ask("mute")
    time.sleep(0.5)
    lab.hop.move()
    time.sleep(3)  # longer than the client's check interval
    lean.ask("unmute")
    time.sleep(0.3)
    lean.ask("mark")
    time.sleep(1)
    (call,) = lean.report()["calls"]
    assert call["gap_ms"] <= HEALED_MS


def test_new_port_of_the_client(lean: LeanDriver) -> None:
    lean.ask("mark")
    lean.ask("move", announce=True)
    time.sleep(1.5)
    assert lean.report()["calls"][0]["gap_ms"] <= HEALED_MS


def test_ice_restart_loses_nothing(lean: LeanDriver) -> None:
    lean.ask("mark")
    lean.ask("restart")
    time.sleep(1.5)
    (call,) = lean.report()["calls"]
    assert call["lost"]["down"] == 0
    assert call["gap_ms"] <= HEALED_MS
    (final,) = lean.stop()["calls"]
    assert final["lost"] == {"down": 0, "up": 0, "up_reported": 0}
