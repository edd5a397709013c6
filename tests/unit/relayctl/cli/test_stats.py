import json
import time

import pytest

from relayctl.reason import Reason
from tests.unit.relayctl.cli.conftest import Relay


def test_stats_shows_what_happened(relay: Relay) -> None:
    _, _, *rows = relay.run("stats").stdout.splitlines()
    assert [row.split() for row in rows] == [
        ["forward", "program", "1,500"],
        ["slow_installed", "packet", "process", "2"],
    ]


def test_stats_all_shows_every_reason(relay: Relay) -> None:
    _, _, *rows = relay.run("stats", "--all").stdout.splitlines()
    assert len(rows) == len(Reason)


def test_stats_as_json_has_every_reason(relay: Relay) -> None:
    found = json.loads(relay.run("stats", "-o", "json").stdout)
    assert [each["reason"] for each in found] == [reason.label for reason in Reason]


@pytest.fixture
def busy(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> Relay:
    """100 packets are forwarded between two looks; a second passes."""
    clock = iter(range(100))

    def sleep(_: float) -> None:
        counts = relay.datapath.reasons()
        relay.datapath.write_slow_reasons({Reason.FORWARD: counts[Reason.FORWARD] + 100})

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    return relay


def test_watch_tells_rates(busy: Relay) -> None:
    found = busy.run("stats", "--watch", "--count", "2")
    rows = [line.split() for line in found.stdout.splitlines() if "forward" in line]
    assert rows == [["forward", "program", "1,600", "100"], ["forward", "program", "1,700", "100"]]


def test_watch_as_json_is_a_list_a_line(busy: Relay) -> None:
    found = busy.run("stats", "--watch", "--count", "2", "-o", "json")
    for line in found.stdout.splitlines():
        [forward] = [each for each in json.loads(line) if each["reason"] == "forward"]
        assert forward["per_s"] == 100.0


def test_top(busy: Relay) -> None:
    found = busy.run("top", "--once")
    assert found.exit_code == 0
    lines = [line.split() for line in found.stdout.splitlines()]
    assert lines[0] == [
        "relay-a",
        "xdp-native",
        "to",
        "endpoints",
        "to",
        "clients",
        "to",
        "user",
        "space",
        "dropped",
    ]
    assert lines[1] == ["2", "of", "1,024", "flows", "daemon", "down", "100/s", "0/s", "0/s", "0/s"]
    assert ["forward", "program", "1,600", "100"] in lines


def test_top_ends_on_interrupt(busy: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    assert busy.run("top").exit_code == 0
