"""A relay that starts empty while its clients send: their flows come from Redis before it is
ready, and calls that come up meanwhile notice nothing."""

from collections.abc import Iterator

import pytest

from tests.chaos import hundred_thousand
from tests.lab.redis_server import RedisServer
from tests.lab.services import Services

CLIENTS = 3000
RATE = 1500  # packets a second of all of them


@pytest.fixture(scope="module")
def crowded(lab_prefix: str) -> Iterator[tuple[Services, RedisServer]]:
    with hundred_thousand.crowded(CLIENTS, RATE, lab_prefix) as found:
        yield found


@pytest.fixture(scope="module")
def services(crowded: tuple[Services, RedisServer]) -> Services:
    return crowded[0]


def test_flows_are_back_before_the_relay_is_ready(services: Services) -> None:
    services.start_relay()
    assert hundred_thousand.count(services) >= CLIENTS
    log = services.relay.log.read_text()
    assert f"redis gave {CLIENTS} flows in" in log


def test_the_endpoint_confirms_them(services: Services) -> None:
    confirmed = hundred_thousand.wait_for(
        lambda: sum(flow["state"] == "confirmed" for flow in services.flows()) >= CLIENTS,
        "the flows are not confirmed",
    )
    assert confirmed
    assert hundred_thousand.count(services) >= CLIENTS


def test_a_relay_without_its_redis_serves_too(crowded: tuple[Services, RedisServer]) -> None:
    services, server = crowded
    services.kill_relay(wipe=True)
    server.kill()
    services.start_relay()
    assert "the relay serves on" in services.relay.log.read_text()
