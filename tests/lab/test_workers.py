"""A transceiver of two workers behind the relay: each has its calls, its flows and its own fate."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relayctl.wire.address import Address, render
from tests.clients.lean_driver import LeanDriver
from tests.lab import http
from tests.lab.deployment import Deployment, deploy

WORKERS = 2
MAX_CALLS = 8  # until both have one; two are enough where signaling's figures are fresh
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def deployment(lab_prefix: str) -> Iterator[Deployment]:
    with deploy("xdp", lab_prefix, echo="opus", workers=WORKERS) as deployment:
        until(lambda: all(ready(deployment, endpoint) for endpoint in endpoints(deployment)))
        yield deployment


def endpoints(deployment: Deployment) -> list[Address]:
    host, base = deployment.site.endpoint
    return [(host, base + number) for number in range(WORKERS)]


def ready(deployment: Deployment, endpoint: Address) -> bool:
    try:
        url = f"http://{render(endpoint)}/readyz"
        return http.request(deployment.site.transceiver, url).status == 200
    except OSError:
        return False


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def owner(deployment: Deployment, call: dict[str, Any]) -> str:
    """The worker that has a call, as signaling finds it by the id alone."""
    site = deployment.site
    found = http.request(site.client, f"{site.calls_url}/{call['id']}/path").json()
    assert found["path"] == "kernel"
    return str(found["endpoint"])


def pid_of(deployment: Deployment, endpoint: str) -> int:
    """Of the worker at `endpoint`, a child of the supervisor."""
    supervisor = deployment.services.transceiver.pid
    for pid in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split():
        if endpoint in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
            return int(pid)
    raise AssertionError(f"no worker at {endpoint}")


class Talk:
    """Calls, one after the other, until each worker has one."""

    def __init__(self, deployment: Deployment) -> None:
        self.calls: list[tuple[LeanDriver, str]] = []
        site = deployment.site
        while len({where for _, where in self.calls}) < WORKERS and len(self.calls) < MAX_CALLS:
            lean = LeanDriver.start(site.client, site.calls_url, site.client_host)
            (call,) = lean.first["calls"]
            assert call["error"] is None
            self.calls.append((lean, owner(deployment, call)))
            time.sleep(1.5)  # signaling asks for loads once a second

    def stop(self) -> dict[str, list[dict[str, Any]]]:
        """Hang up; each worker's calls as their clients saw them."""
        found: dict[str, list[dict[str, Any]]] = {}
        for lean, where in self.calls:
            found.setdefault(where, []).append(lean.stop()["calls"][0])
        return found


def test_calls_land_on_both_workers_and_lose_nothing(deployment: Deployment) -> None:
    services, site = deployment.services, deployment.site
    talk = Talk(deployment)
    time.sleep(2)  # they talk: 100 packets
    flows = [flow for flow in services.flows() if flow["state"] == "confirmed"]
    calls = talk.stop()
    both = {render(endpoint) for endpoint in endpoints(deployment)}
    assert calls.keys() == both
    assert {flow["endpoint"] for flow in flows} == both
    for call in (each for of_worker in calls.values() for each in of_worker):
        assert call["remote"] == render(site.vip)
        assert call["sent"] > 50
        assert call["lost"] == {"down": 0, "up": 0, "up_reported": 0}
        assert call["rejected"] == 0


def test_a_killed_worker_takes_no_other_call_with_it(deployment: Deployment) -> None:
    site = deployment.site
    talk = Talk(deployment)
    unlucky, lucky = (render(endpoint) for endpoint in endpoints(deployment))
    before = pid_of(deployment, unlucky)
    os.kill(before, signal.SIGKILL)
    with LeanDriver.start(site.client, site.calls_url, site.client_host) as lean:
        (call,) = lean.first["calls"]
        assert call["error"] is None  # signaling passes over the dead one
    host, port = unlucky.split(":")
    until(lambda: ready(deployment, (host, int(port))))
    assert pid_of(deployment, unlucky) != before
    calls = talk.stop()
    assert calls.keys() == {unlucky, lucky}
    for call in calls[lucky]:
        assert call["lost"] == {"down": 0, "up": 0, "up_reported": 0}
