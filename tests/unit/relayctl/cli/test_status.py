import json

from relayctl.reason import Reason
from tests.unit.relayctl.cli.conftest import Relay


def test_status_as_table(relay: Relay) -> None:
    found = relay.run("status")
    lines = dict(line.split(maxsplit=1) for line in found.stdout.splitlines())
    assert lines["instance"] == "relay-a"
    assert lines["running"] == "no"
    assert lines["flows.max"] == "1024"
    assert lines["vips"] == "1 203.0.113.10:3478"
    assert "reasons.forward" not in lines


def test_status_as_json(relay: Relay) -> None:
    found = json.loads(relay.run("status", "-o", "json").stdout)
    assert found["running"] is False
    assert found["flows"] == {"new": 1, "confirmed": 1, "max": 1024}
    assert found["reasons"] == {"forward": 1500, "slow_installed": 2}


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


def test_nexthops(relay: Relay) -> None:
    _, _, first, second = relay.run("nexthops").stdout.splitlines()
    assert first.split()[:5] == ["1", "yes", "10.2.0.2", "inner0", "10.2.0.1"]
    assert second.split()[-1] == "100"
    found = json.loads(relay.run("nexthops", "-o", "json").stdout)
    assert [each["gateway"] for each in found] == ["10.2.0.2", "10.3.0.1"]
