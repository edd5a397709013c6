import json

import pytest

from relayctl.flow import Flow, FlowKey
from relayctl.inspect.reader import now
from tests.unit.relayctl.cli.conftest import Relay
from tests.unit.relayctl.memory_datapath import MemoryFlows

NOTICE = "relay-a: the daemon is not running, reading its maps\n"


def clients(text: str) -> list[str]:
    return [flow["client"] for flow in json.loads(text)]


def test_list_as_table(relay: Relay) -> None:
    found = relay.run("flows", "list")
    assert found.exit_code == 0
    assert found.stderr == NOTICE
    header, _, first, second = found.stdout.splitlines()
    assert header.split()[:4] == ["CLIENT", "VIP", "ENDPOINT", "STATE"]
    assert first.split()[:4] == ["198.51.100.7:40000", "203.0.113.10:3478", "10.2.0.3:5000", "new"]
    assert "no_nexthop_out" in first
    assert second.split()[3:6] == ["confirmed", "kernel", "-"]
    assert "180.0 kB" in second


def test_list_as_json(relay: Relay) -> None:
    found = relay.run("flows", "list", "-o", "json")
    [flow] = [each for each in json.loads(found.stdout) if each["state"] == "confirmed"]
    assert flow["client"] == "198.51.100.9:40001"
    assert flow["vip"] == "203.0.113.10:3478"
    assert flow["endpoint"] == "10.2.0.2:5000"
    assert flow["packets"] == {"up": 1500, "down": 2}
    assert flow["bytes"] == {"up": 180_000, "down": 240}
    assert (flow["path"], flow["reason"]) == ("kernel", None)
    assert flow["age_s"] == pytest.approx(32, abs=2)
    assert flow["idle_s"] == pytest.approx(0, abs=2)


def test_list_filters(relay: Relay) -> None:
    assert clients(relay.run("flows", "list", "-o", "json", "--state", "new").stdout) == [
        "198.51.100.7:40000"
    ]
    found = relay.run("flows", "list", "-o", "json", "--endpoint", "10.2.0.2:5000")
    assert clients(found.stdout) == ["198.51.100.9:40001"]


def test_list_sorts_and_limits(relay: Relay) -> None:
    found = relay.run("flows", "list", "-o", "json", "--sort", "bytes", "--limit", "1")
    assert clients(found.stdout) == ["198.51.100.9:40001"]


def test_list_says_how_many_more(relay: Relay) -> None:
    for arguments in ([], ["--sort", "idle"]):
        found = relay.run("flows", "list", "-o", "json", "--limit", "1", *arguments)
        assert len(clients(found.stdout)) == 1
        assert "1 more; --limit 0 shows all\n" in found.stderr
    found = relay.run("flows", "list", "--limit", "1", "--state", "new")
    assert "more" not in found.stderr


def test_filtered_list_counts_what_matches(relay: Relay) -> None:
    for port in range(5):
        key = FlowKey(("198.51.100.1", 50000 + port), 1)
        relay.datapath.flows.install(key, Flow(("10.2.0.9", 5000), 7, 5100))
    found = relay.run("flows", "list", "--limit", "2", "--endpoint", "10.2.0.9:5000")
    assert "3 more" in found.stderr


def test_limit_0_shows_all(relay: Relay) -> None:
    for output in ("json", "table"):
        found = relay.run("flows", "list", "-o", output, "--limit", "0")
        assert found.stdout.count("198.51.100.") == 2
        assert found.stderr == NOTICE


def test_flows_of_ipv6(relay: Relay) -> None:
    client = "[2001:db8::1]:40000"
    key = FlowKey(("2001:db8::1", 40000), 1)
    relay.datapath.flows.install(key, Flow(("fd00:b::5", 5000), 9, 5100))
    found = relay.run("flows", "get", client, "-o", "json")
    assert clients(found.stdout) == [client]
    found = relay.run("flows", "list", "-o", "json", "--endpoint", "[fd00:b::5]:5000")
    assert clients(found.stdout) == [client]


def test_contended_flow(relay: Relay) -> None:
    key = FlowKey(("198.51.100.1", 40000), 1)
    relay.datapath.flows.install(key, Flow(("10.2.0.9", 5000), 7, 5100, contended=now()))
    assert "0 s, open" in relay.run("flows", "get", "198.51.100.1:40000").stdout


def test_empty_table(relay: Relay) -> None:
    relay.datapath.flows = MemoryFlows(1024)
    assert json.loads(relay.run("flows", "list", "-o", "json").stdout) == []


def test_output_option_stands_anywhere(relay: Relay) -> None:
    assert json.loads(relay.run("-o", "json", "flows", "list").stdout)


def test_maps_are_closed(relay: Relay) -> None:
    relay.run("flows", "list")
    assert relay.datapath.closed


def test_get(relay: Relay) -> None:
    found = relay.run("flows", "get", "198.51.100.9:40001", "--vip", "1", "-o", "json")
    assert clients(found.stdout) == ["198.51.100.9:40001"]


@pytest.mark.parametrize(
    "arguments", [["198.51.100.9:1"], ["198.51.100.9:40001", "--vip", "203.0.113.11:3478"]]
)
def test_get_of_no_flow_fails(relay: Relay, arguments: list[str]) -> None:
    found = relay.run("flows", "get", *arguments)
    assert found.exit_code == 1
    assert found.stdout == ""
    assert f"no flow of {arguments[0]}" in found.stderr


def test_get_of_no_address_is_wrong_usage(relay: Relay) -> None:
    found = relay.run("flows", "get", "198.51.100.9")
    assert found.exit_code == 2
    assert "want <ip>:<port>" in found.stderr


def test_delete_needs_the_daemon(relay: Relay) -> None:
    found = relay.run("flows", "delete", "198.51.100.9:40001")
    assert found.exit_code == 1
    assert "only the daemon deletes a flow" in found.stderr


def test_watch_tells_what_is_there_first(relay: Relay) -> None:
    found = relay.run("flows", "watch", "--count", "1", "-o", "json")
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert {(line["change"], line["flow"]["client"]) for line in lines} == {
        ("known", "198.51.100.7:40000"),
        ("known", "198.51.100.9:40001"),
    }


def test_watch_is_silent_while_nothing_changes(relay: Relay) -> None:
    found = relay.run("flows", "watch", "--count", "3", "--interval", "0.1")
    assert len(found.stdout.splitlines()) == 2
    assert found.stderr == NOTICE


def test_watch_line(relay: Relay) -> None:
    key = FlowKey(("198.51.100.9", 40001), 1)
    relay.datapath.flows.delete(key)
    relay.datapath.flows.install(key, Flow(("10.2.0.9", 5000), 7, 5100))
    found = relay.run("flows", "watch", "--count", "1")
    assert any(
        "198.51.100.9:40001 > 10.2.0.9:5000 user" in line for line in found.stdout.splitlines()
    )


def test_no_relay_at_all(relay: Relay) -> None:
    (relay.root / "ferryline/relay-a").rmdir()
    found = relay.run("flows", "list")
    assert found.exit_code == 1
    assert "relay-a.sock" in found.stderr
    assert "relayctl serve" in found.stderr
