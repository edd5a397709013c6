import json

import pytest

from relayctl.cli.session import Session
from relayctl.inspect.pin_reader import PinReader
from tests.unit.relayctl.cli.conftest import Relay


def test_status_as_table(relay: Relay) -> None:
    found = relay.run("status")
    lines = dict(line.split(maxsplit=1) for line in found.stdout.splitlines())
    assert lines["instance"] == "relay-a"
    assert lines["running"] == "no"
    assert lines["flows.max"] == "1024"
    assert lines["vips"] == "1 203.0.113.10:3478"
    assert "reasons.forward" not in lines
    assert lines["interfaces"] == "outer0 outer, eth0.20 inner"
    assert lines["kernel.interfaces"] == "outer0 outer 1 native, eth0.20 inner 2 20 native"
    assert lines["kernel.flows.v4.confirmed"] == "1"
    assert lines["kernel.flows.v6.max"] == "24"
    assert lines["kernel.keys"] == "1, 2"
    assert (lines["kernel.program"], lines["kernel.instructions"]) == ("71", "4711")


def test_status_as_json(relay: Relay) -> None:
    found = json.loads(relay.run("status", "-o", "json").stdout)
    assert found["running"] is False
    assert found["flows"] == {"new": 1, "confirmed": 1, "max": 1024}
    assert found["reasons"] == {"forward": 1500, "slow_installed": 2}


def test_nexthops(relay: Relay) -> None:
    _, _, first, second = relay.run("nexthops").stdout.splitlines()
    assert first.split()[:5] == ["1", "yes", "10.2.0.2", "eth0.20", "1500"]
    assert second.split()[-1] == "100"
    found = json.loads(relay.run("nexthops", "-o", "json").stdout)
    assert [each["gateway"] for each in found] == ["10.2.0.2", "10.3.0.1"]


def test_clusters(relay: Relay) -> None:
    _, _, row = relay.run("clusters").stdout.splitlines()
    assert row.split() == ["7", "::ffff:0:0/96", "10.2.0.0/24", "1024-65535", "2"]
    [found] = json.loads(relay.run("clusters", "-o", "json").stdout)
    assert found == {
        "id": 7,
        "prefix": "::ffff:0:0/96",
        "allow": ["10.2.0.0/24"],
        "ports": [1024, 65535],
        "flows": 2,
    }


def test_clusters_stand_in_the_configuration(relay: Relay) -> None:
    found = relay.bare("clusters", "--instance", "relay-a")
    assert found.exit_code == 1
    assert "--config FILE" in found.stderr


def test_what_the_kernel_holds_stands_beside_the_daemons_answer(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PinReader, "status", lambda _: {"instance": "relay-a", "running": True})
    found = json.loads(relay.run("status", "-o", "json").stdout)
    assert found["running"] is True
    assert found["kernel"]["flows"]["v4"] == {"new": 1, "confirmed": 1, "max": 1000}


def test_a_daemon_whose_pins_cannot_be_read(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PinReader, "status", lambda _: {"instance": "relay-a", "running": True})
    monkeypatch.setattr(Session, "kernel", lambda _: None)
    assert relay.run("status").stdout == "instance  relay-a\nrunning   yes\n"
