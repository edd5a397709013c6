"""Every packet is counted once: on the wire, in the relay, in the flow, and at both ends."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from relayctl.reason import PUNTS, Reason
from tests.clients.lean_driver import LeanDriver
from tests.lab.deployment import Deployment, Place, deploy
from tests.lab.frame import MEDIA
from tests.lab.hop_control import HopControl
from tests.lab.services import Services

UP = (Reason.FORWARD, Reason.SLOW_INSTALLED, Reason.SLOW_FORWARD, Reason.SLOW_HINT)
DOWN = (Reason.RETURN, Reason.SLOW_RETURN, Reason.SLOW_RECOVERED)
SLOW = [reason for reason in Reason if reason.label.startswith("slow_")]


@pytest.fixture(scope="module", params=["xdp", "socket"])
def deployment(request: pytest.FixtureRequest, lab_prefix: str) -> Iterator[Deployment]:
    place: Place = request.param
    with deploy(place, lab_prefix, echo="opus", faults=True) as deployment:
        yield deployment


@dataclass(frozen=True)
class Books:
    """What everybody counted, up and down."""

    wire: tuple[int, int]
    relay: tuple[int, int]
    flow: tuple[int, int]
    punts: tuple[int, int]  # handed up, and taken there

    @property
    def agree(self) -> bool:
        return self.wire == self.relay == self.flow and self.punts[0] == self.punts[1]


def books(services: Services, hop: HopControl, before: dict[str, int], client: str) -> Books:
    (flow,) = [flow for flow in services.flows() if flow["client"] == client]
    counted = {label: n - before.get(label, 0) for label, n in services.reasons().items()}
    wire = hop.counters()

    def total(chosen: Iterable[Reason]) -> int:
        return sum(counted.get(reason.label, 0) for reason in chosen)

    def sent(way: str) -> int:
        return sum(wire[way].get(kind, {}).get("sent", 0) for kind in MEDIA)

    return Books(
        (sent("up"), sent("down")),
        (total(UP), total(DOWN)),
        (flow["packets"]["up"], flow["packets"]["down"]),
        (total(PUNTS), total(SLOW)),
    )


def test_counters_agree(deployment: Deployment) -> None:
    services, site, lab = deployment.services, deployment.site, deployment.lab
    assert lab is not None
    before = services.reasons()
    lab.hop.counters(reset=True)
    with LeanDriver.start(site.client, site.calls_url, site.client_host, "--channel") as lean:
        time.sleep(2)
        lean.ask("mute")
        time.sleep(0.3)
        (call,) = lean.report()["calls"]
        seen = services.call(call["id"]).json()
        found = books(services, lab.hop, before, seen["client"])
        deadline = time.monotonic() + 5
        while not found.agree and time.monotonic() < deadline:
            time.sleep(0.2)  # the packet process tells its numbers once a second
            found = books(services, lab.hop, before, seen["client"])
        rtp = lab.hop.counters()
    assert found.agree, found
    assert rtp["up"]["rtp"]["sent"] == call["sent"] == seen["packets"]["up"]
    assert rtp["down"]["rtp"]["sent"] == call["received"] == seen["packets"]["down"]
    if deployment.place == "xdp":
        assert 1 <= found.punts[0] <= 3
