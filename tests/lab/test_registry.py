"""Signaling finds transceivers by Redis: they come and go, and so does Redis."""

import json
import signal
import statistics
import time
from collections.abc import Iterator

import pytest

from relayctl.wire.address import render
from relayctl.wire.registration import Registration, key_of
from tests.clients.lean_driver import LeanDriver
from tests.lab import http
from tests.lab.fleet import FIRST, PASSWORD, SECOND, Fleet, fleet, until

OFFERS = 12
LATER_S = 6.0  # keys that nobody renews are gone by then


@pytest.fixture(scope="module")
def place(lab_prefix: str) -> Iterator[Fleet]:
    with fleet(lab_prefix) as place:
        yield place
        logs = "".join(log.read_text() for log in place.lab.directory.glob("*.log"))
        assert PASSWORD not in logs


@pytest.fixture
def both(place: Fleet) -> Iterator[Fleet]:
    """With the second transceiver, known too."""
    place.start_another()
    until(lambda: place.figure("ferryline_signaling_transceivers_ready") == 2)
    yield place
    place.stop_another()


def seconds(place: Fleet) -> float:
    """Median of some offers, all of which are taken."""
    offered = [place.offer() for _ in range(OFFERS)]
    assert {each.status for each in offered} == {201}
    return statistics.median(each.seconds for each in offered)


def test_a_call_finds_its_way_by_the_registry(place: Fleet) -> None:
    site = place.services.site
    assert place.registered() == {render(FIRST)}
    with place.redis.client() as client:
        assert client.ttl(key_of(FIRST)) in range(1, 6)
        written = json.loads(str(client.get(key_of(FIRST))))
    names = ["cluster", "calls", "capacity", "lateness_ms", "draining", "version"]
    assert list(written) == names
    with LeanDriver.start(site.client, site.calls_url, site.client_host) as lean:
        (call,) = lean.first["calls"]
        assert call["error"] is None
        time.sleep(1)
        (final,) = lean.stop()["calls"]
    assert final["lost"] == {"down": 0, "up": 0, "up_reported": 0}


def test_a_new_transceiver_takes_calls_soon(place: Fleet) -> None:
    place.start_another()
    begun = time.monotonic()
    until(lambda: place.place() == render(SECOND))
    assert time.monotonic() - begun < 20
    place.stop_another()


def test_redis_is_killed_and_comes_back(place: Fleet) -> None:
    before = seconds(place)
    place.redis.kill()
    try:
        time.sleep(LATER_S)
        assert place.figure("ferryline_signaling_registry_silent") == 1
        assert seconds(place) < 10 * before + 0.5
        assert place.ask("/readyz").status_code == 200
    finally:
        place.redis.start()
    until(lambda: place.registered() == {render(FIRST)})
    until(lambda: place.figure("ferryline_signaling_registry_silent") == 0)
    assert seconds(place) < 10 * before + 0.5


def test_redis_hangs(both: Fleet) -> None:
    before = seconds(both)
    both.redis.hang()
    try:
        time.sleep(LATER_S)
        assert both.figure("ferryline_signaling_registry_silent") == 1
        assert seconds(both) < 10 * before + 0.5
        both.services.programs["another"].kill()
        assert {both.place() for _ in range(OFFERS)} == {render(FIRST)}
    finally:
        both.redis.go_on()
    until(lambda: both.figure("ferryline_signaling_registry_silent") == 0)


def test_redis_is_emptied(both: Fleet) -> None:
    both.redis.flush()
    assert {both.offer().status for _ in range(OFFERS)} == {201}
    until(lambda: both.registered() == {render(FIRST), render(SECOND)})
    until(lambda: {both.place() for _ in range(4)} == {render(FIRST), render(SECOND)})


def test_a_killed_transceiver_is_skipped(both: Fleet) -> None:
    both.services.programs["another"].kill()
    assert {both.place() for _ in range(OFFERS)} == {render(FIRST)}
    until(lambda: both.registered() == {render(FIRST)})
    until(lambda: both.figure("ferryline_signaling_transceivers_ready") == 1)


def test_a_draining_transceiver_gets_no_new_calls(both: Fleet) -> None:
    second = both.lab.transceivers[1]
    token = both.services.setup.control_token
    url = f"http://{render(SECOND)}/v1/drain"
    program = both.services.programs["another"]
    site = both.services.site
    with LeanDriver.start(site.client, site.calls_url, site.client_host, "--calls", "4"):
        assert http.request(second, url, "POST", token).status == 202
        assert {both.place() for _ in range(OFFERS)} == {render(FIRST)}
    program.process.wait(20)
    assert program.process.returncode == 0
    assert both.registered() == {render(FIRST)}


def test_a_stopped_transceiver_takes_its_key_along(both: Fleet) -> None:
    assert both.services.programs["another"].stop(signal.SIGTERM) == 0
    assert both.registered() == {render(FIRST)}


def test_what_a_stranger_writes_into_redis(place: Fleet) -> None:
    """Garbage, foreign addresses, absurd figures, and very many keys."""
    before = seconds(place)
    good = Registration(cluster=7, calls=0, capacity=10**6).render()
    poison = {
        key_of(FIRST): "{",
        key_of(("198.51.100.9", 5000)): good,
        key_of((SECOND[0], 5001)): good,  # nobody is there
        key_of((SECOND[0], 5002)): good.replace('"calls":0', '"calls":-1e999'),
        key_of((SECOND[0], 5003)): "[" * 1000,
        key_of((SECOND[0], 5004)): "x" * 10_000_000,
        "transceiver:": good,
        "transceiver:{10.2.0.2:05000}": good,
        "transceiver:{nonsense}": good,
    }
    try:
        with place.redis.client() as client:
            client.mset(poison)
            client.rpush(key_of((SECOND[0], 5005)), "a list")
            client.mset({key_of((SECOND[0], 10_000 + n)): good for n in range(1000)})
            for start in range(0, 100_000, 10_000):
                numbers = range(start, start + 10_000)
                client.mset({f"transceiver:{{{number}}}": good for number in numbers})
        time.sleep(LATER_S)
        assert seconds(place) < 10 * before + 0.5
        place.start_another()  # found all the same
        until(lambda: place.place() == render(SECOND))
        place.stop_another()
        assert place.figure("ferryline_signaling_registry_ignored_total") > 1000
    finally:
        place.redis.flush()
    until(lambda: place.registered() == {render(FIRST)})
    assert {place.place() for _ in range(4)} == {render(FIRST)}
