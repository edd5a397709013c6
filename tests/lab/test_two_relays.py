"""Two relays with one VIP behind a router: whichever way its packets take, a call goes on."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.clients.lean_driver import LeanDriver
from tests.lab.redis_server import RedisServer
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import SIGNALING_INNER, Lab

CALLS = 8
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def lab(lab_prefix: str) -> Iterator[Lab]:
    with Lab(lab_prefix, relays=2) as lab:
        yield lab


@pytest.fixture(scope="module")
def redis(lab: Lab) -> Iterator[RedisServer]:
    with RedisServer(lab.signaling, host=SIGNALING_INNER) as server:
        yield server


@pytest.fixture(scope="module")
def services(lab: Lab, redis: RedisServer) -> Iterator[Services]:
    with Services(in_lab(lab), echo="opus", relays=2, redis=redis.url) as services:
        yield services


@pytest.fixture
def lean(lab: Lab, services: Services) -> Iterator[LeanDriver]:
    """Calls that are up; both relays serve, before and afterwards."""
    site = services.site
    lab.route_vip(0, 1)
    with LeanDriver.start(
        site.client, site.calls_url, site.client_host, "--calls", str(CALLS)
    ) as lean:
        time.sleep(1)
        yield lean
        lab.route_vip(0, 1)


def go_on(lean: LeanDriver) -> bool:
    """Whether every call hears its echo again."""
    time.sleep(3)
    before = [call["received"] for call in lean.report()["calls"]]
    time.sleep(1)
    after = [call["received"] for call in lean.report()["calls"]]
    return all(new > old + 20 for old, new in zip(before, after, strict=True))


def test_the_router_spreads_flows(services: Services, lean: LeanDriver) -> None:
    tables = [{flow["client"] for flow in services.flows(n)} for n in (0, 1)]
    assert all(tables)
    assert len(tables[0] | tables[1]) >= CALLS
    assert [call["lost"]["down"] for call in lean.stop()["calls"]] == [0] * CALLS


def test_drained_relay(lab: Lab, services: Services, lean: LeanDriver) -> None:
    services.relayctl("drain")
    try:
        assert services.ask_relay("/readyz").status == 503
        assert services.ask_relay("/readyz", 1).status == 200
        assert go_on(lean)  # before any router noticed
        lab.route_vip(1)
        assert go_on(lean)
    finally:
        services.relayctl("undrain")
    assert services.ask_relay("/readyz").status == 200


def test_killed_relay(lab: Lab, services: Services, lean: LeanDriver) -> None:
    services.kill_relay(0)
    try:
        lab.route_vip(1)
        assert go_on(lean)
    finally:
        services.start_relay(0)


def test_node_that_vanishes_and_comes_back_empty(
    lab: Lab, services: Services, lean: LeanDriver
) -> None:
    lab.vanish(0)
    services.kill_relay(0, wipe=True)
    lab.route_vip(1)
    assert go_on(lean)
    lab.return_(0)
    services.start_relay(0)
    lab.route_vip(0)
    assert go_on(lean)


def test_moved_flows_are_looked_up(
    lab: Lab, services: Services, redis: RedisServer, lean: LeanDriver
) -> None:
    lab.route_vip(0)
    assert go_on(lean)
    with redis.client() as client:  # written behind
        until(lambda: len(list(client.scan_iter("flow:*", count=1000))) >= CALLS)
    services.kill_relay(1, wipe=True)
    redis.hang()  # nothing is loaded at the start
    services.start_relay(1)
    redis.go_on()
    until(lambda: services.ask_relay("/v1/status", 1).json()["redis"] == "ok")
    assert services.flows(1) == []
    lab.route_vip(1)
    assert go_on(lean)
    assert services.reasons(1)["slow_cached"] > 0


@pytest.mark.parametrize("is_up", [True, False], ids=["redis", "no_redis"])
def test_reshuffle(
    lab: Lab, services: Services, redis: RedisServer, lean: LeanDriver, is_up: bool
) -> None:
    if not is_up:
        redis.kill()
    try:
        for seed in range(1, 4):
            lab.reshuffle(seed)
            time.sleep(1)
        assert go_on(lean)
    finally:
        if not is_up:
            redis.start()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
