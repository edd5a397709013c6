"""Flows in Redis: they bring calls back to a relay that lost everything, and whatever Redis does,
no call notices."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.clients.lean_driver import LeanDriver
from tests.lab.redis_server import RedisServer
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import SIGNALING_INNER, Lab

CALLS = 3
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def lab(lab_prefix: str) -> Iterator[Lab]:
    with Lab(lab_prefix) as lab:
        yield lab


@pytest.fixture(scope="module")
def server(lab: Lab) -> Iterator[RedisServer]:
    with RedisServer(lab.signaling, host=SIGNALING_INNER, password="pass-word") as server:
        yield server


@pytest.fixture(scope="module")
def services(lab: Lab, server: RedisServer) -> Iterator[Services]:
    with Services(in_lab(lab), echo="opus", redis=server.url) as services:
        yield services


@pytest.fixture
def calls(services: Services) -> Iterator[LeanDriver]:
    site = services.site
    options = ("--calls", str(CALLS))
    with LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as calls:
        yield calls


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def in_redis(server: RedisServer, pattern: str = "flow:*") -> set[str]:
    with server.client() as client:
        return set(client.scan_iter(pattern))


def names(services: Services) -> set[str]:
    """Of flows that an endpoint confirmed."""
    flows = services.flows()
    return {f"flow:{{1:{flow['client']}}}" for flow in flows if flow["state"] == "confirmed"}


def lost(calls: LeanDriver) -> int:
    found = calls.report()["calls"]
    return sum(call["echoed"]["lost"] + call["lost"]["down"] for call in found)


def state(services: Services) -> str:
    found: str = services.ask_relay("/v1/status").json()["redis"]
    return found


def test_confirmed_flows_and_their_sources_are_kept(
    services: Services, server: RedisServer, calls: LeanDriver
) -> None:
    wait_for(lambda: len(names(services)) >= CALLS, "the flows are not confirmed")
    wait_for(lambda: names(services) <= in_redis(server), "Redis lacks flows")
    wait_for(lambda: len(in_redis(server, "hint:*")) >= CALLS, "Redis lacks SSRCs")


@pytest.mark.parametrize("fault", ["killed", "hung", "flushed", "full", "read_only"])
def test_no_call_notices_what_redis_does(
    services: Services, server: RedisServer, calls: LeanDriver, fault: str
) -> None:
    wait_for(lambda: names(services) <= in_redis(server), "Redis lacks flows")
    before = lost(calls)
    begin, end = {
        "killed": (server.kill, server.start),
        "hung": (server.hang, server.go_on),
        "flushed": (server.flush, lambda: None),
        "full": (lambda: server.fill(), lambda: server.fill(False)),
        "read_only": (lambda: server.read_only(), lambda: server.read_only(False)),
    }[fault]
    begin()
    try:
        site = services.site
        with LeanDriver.start(site.client, site.calls_url, site.client_host, "--calls", "1"):
            if fault in ("killed", "hung"):
                wait_for(lambda: state(services) == "silent", "the relay does not see it")
            elif fault != "flushed":
                wait_for(lambda: state(services) == "refusing writes", "the relay does not see it")
            time.sleep(1.0)
            assert lost(calls) == before
            assert len(names(services)) >= CALLS + 1
    finally:
        end()
    wait_for(lambda: state(services) == "ok", "the relay does not see Redis again")
    wait_for(lambda: names(services) <= in_redis(server), "Redis lacks flows again")
    assert lost(calls) == before
    assert "pass-word" not in services.relay.log.read_text()


def test_a_wiped_relay_that_serves_already_looks_flows_up(
    services: Services, server: RedisServer, calls: LeanDriver
) -> None:
    """Its Redis comes up only when it serves: no preload knows the flows."""
    wait_for(lambda: names(services) <= in_redis(server), "Redis lacks flows")
    services.kill_relay(wipe=True)
    server.hang()
    services.start_relay()
    server.go_on()
    wait_for(lambda: len(names(services)) >= CALLS, "flows are not back")
    print({name: count for name, count in services.reasons().items() if count})
    report = calls.report()["calls"]
    time.sleep(2.0)
    after = calls.report()["calls"]
    assert all(b["received"] > a["received"] for a, b in zip(report, after, strict=True))
