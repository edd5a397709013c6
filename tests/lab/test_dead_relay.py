"""A relay whose processes are gone, its program still attached: the kernel answers nobody."""

import os
import signal
from collections.abc import Iterator

import pytest

from relayctl.reason import Reason
from tests.clients.lean_driver import LeanDriver
from tests.lab import http
from tests.lab.attacker import Attacker
from tests.lab.deployment import Deployment, deploy
from tests.lab.victim import authentic_request

RATE = 50.0
UNHEARD_S = 5  # longer than the program waits for a heartbeat


@pytest.fixture(scope="module")
def deployment(lab_prefix: str) -> Iterator[Deployment]:
    with deploy("xdp", lab_prefix, echo="opus") as deployment:
        yield deployment


@pytest.fixture
def lean(deployment: Deployment) -> Iterator[LeanDriver]:
    """A call before, which ends as it began; and a relay again afterwards."""
    services, site = deployment.services, deployment.site
    with LeanDriver.start(site.client, site.calls_url, site.client_host) as lean:
        yield lean
        if not services.relay.running:
            services.start_relay()
        (call,) = lean.stop()["calls"]
    assert call["lost"] == {"up": 0, "down": 0, "up_reported": 0}
    assert call["gap_ms"] < 800


def unheard(deployment: Deployment) -> list[bytes]:
    """What a packet process would hear, were there one."""
    return [authentic_request(deployment.services)] * int(UNHEARD_S * RATE)


def test_killed_daemon(deployment: Deployment, lean: LeanDriver) -> None:
    site = deployment.site
    with Attacker(site.client, site.client_host) as attacker:
        deployment.services.relay.kill()
        attacker.send(unheard(deployment), site.vip, RATE)
        assert attacker.answers() == []


def test_killed_packet_process(deployment: Deployment, lean: LeanDriver) -> None:
    """The daemon ends with it, so that a supervisor starts both again. Even if it notices late,
    nobody is told that the port is closed."""
    site, relay = deployment.site, deployment.services.relay
    status = http.request(site.relay, f"{site.admin_url}/v1/status").json()
    with Attacker(site.client, site.client_host) as attacker:
        relay.process.send_signal(signal.SIGSTOP)
        os.kill(status["packet_process_pid"], signal.SIGKILL)
        attacker.send(unheard(deployment), site.vip, RATE)
        assert attacker.answers() == []
        relay.process.send_signal(signal.SIGCONT)
    assert relay.process.wait(30) == 1
    assert "the packet process was killed by signal 9" in relay.tail()


def test_stopped_daemon(deployment: Deployment, lean: LeanDriver) -> None:
    site = deployment.site
    with Attacker(site.client, site.client_host) as attacker:
        assert deployment.services.relay.stop() == 0
        attacker.send(unheard(deployment), site.vip, RATE)
        assert attacker.answers() == []


def test_what_came_meanwhile_was_counted(deployment: Deployment) -> None:
    assert deployment.services.reasons()[Reason.DROP_NO_DAEMON.label] > 3 * RATE
