"""BIRD announces the VIP of relays that are ready: configurations and check of deploy/bird."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.lean_driver import LeanDriver
from tests.lab.node import REPOSITORY, Node
from tests.lab.program import Program
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import RELAYS_OUTER, VIP, Lab

BIRD = shutil.which("bird", path="/usr/sbin:/usr/bin")
DEPLOY = REPOSITORY / "deploy" / "bird"
CALLS = 6
PATIENCE_S = 60.0
# What the example has for the first relay, and what stands there for the second one.
SECOND = {"10.3.0.2": RELAYS_OUTER[1], "10.3.0.1": "10.6.0.1"}

pytestmark = pytest.mark.skipif(BIRD is None, reason="there is no bird; apt-get install bird2")


class Speaker:
    """One BIRD, and on relays the check beside it."""

    def __init__(self, lab: Lab, name: str, node: Node, configuration: str) -> None:
        self._node = node
        self._name = name
        self._socket = lab.directory / f"{name}.ctl"
        path = lab.directory / f"{name}.conf"
        path.write_text(configuration)
        self.bird = self._start(path)
        self.check: Program | None = None

    def _start(self, path: Path) -> Program:
        assert BIRD is not None
        argv = [BIRD, "-f", "-c", str(path), "-s", str(self._socket), "-P", f"{self._socket}.pid"]
        return self._node.popen(self._name, argv)

    def announce(self, readyz: str) -> None:
        argv = [str(DEPLOY / "announce"), "--readyz", readyz, "--control", str(self._socket)]
        self.check = self._node.popen(f"{self._name}-announce", argv)

    def stop(self) -> None:
        for program in (self.check, self.bird):
            if program is not None:
                program.stop()


@pytest.fixture(scope="module")
def lab(lab_prefix: str) -> Iterator[Lab]:
    with Lab(lab_prefix, relays=2) as lab:
        lab.route_vip()  # from here on BIRD says where it is
        yield lab


@pytest.fixture(scope="module")
def services(lab: Lab) -> Iterator[Services]:
    with Services(in_lab(lab), echo="opus", relays=2) as services:
        yield services


@pytest.fixture(scope="module")
def speakers(lab: Lab, services: Services) -> Iterator[list[Speaker]]:
    """Of both relays; the router has one too."""
    router = Speaker(lab, "bird-router", lab.router, (DEPLOY / "router.conf").read_text())
    relays = []
    for n, node in enumerate(lab.relays):
        text = (DEPLOY / "relay.conf").read_text()
        for first, other in SECOND.items() if n else ():
            text = text.replace(first, other)
        relays.append(Speaker(lab, f"bird-relay-{n}", node, text))
        relays[n].announce(f"{services.site.at_relay(n).admin_url}/readyz")
    yield relays
    for each in [*relays, router]:
        each.stop()


def ways(lab: Lab) -> set[str]:
    """Gateways of the router's route of the VIP."""
    shown = lab.router.run(["ip", "route", "show", f"{VIP}/32"]).stdout.split()
    return {shown[at + 1] for at, word in enumerate(shown) if word == "via"}


def until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


def until_by(lab: Lab, *which: int) -> None:
    """Until the router sends to these relays, and no others."""
    wanted = {RELAYS_OUTER[n] for n in which}
    until(lambda: ways(lab) == wanted, lambda: (ways(lab), wanted))


def go_on(lean: LeanDriver) -> bool:
    """Whether every call hears its echo again."""
    before = [call["received"] for call in lean.report()["calls"]]

    def hears() -> bool:
        after = [call["received"] for call in lean.report()["calls"]]
        return all(new > old + 20 for old, new in zip(before, after, strict=True))

    until(hears, lean.report)
    return True


def test_the_vip_is_where_relays_are_ready(
    lab: Lab, services: Services, speakers: list[Speaker]
) -> None:
    until_by(lab, 0, 1)
    site = services.site
    with LeanDriver.start(
        site.client, site.calls_url, site.client_host, "--calls", str(CALLS)
    ) as lean:
        services.relayctl("drain")
        until_by(lab, 1)
        assert go_on(lean)
        services.relayctl("undrain")
        until_by(lab, 0, 1)
        assert go_on(lean)

        services.kill_relay(1)
        until_by(lab, 0)
        assert go_on(lean)
        services.start_relay(1)
        until_by(lab, 0, 1)
        assert go_on(lean)

        lab.vanish(0)
        until_by(lab, 1)
        assert go_on(lean)
        lab.return_(0)
        until_by(lab, 0, 1)
        assert go_on(lean)


def test_who_announces_withdraws_at_its_end(lab: Lab, speakers: list[Speaker]) -> None:
    until_by(lab, 0, 1)
    check = speakers[1].check
    assert check is not None
    check.stop()
    until_by(lab, 0)
