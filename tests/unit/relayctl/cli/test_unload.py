import fcntl

import pytest

from relayctl.inspect.reader import now
from tests.unit.relayctl.cli.conftest import Relay


@pytest.fixture
def relay(relay: Relay) -> Relay:
    """Its daemon has stopped in order."""
    relay.datapath.beat(0)
    return relay


def test_unload_asks(relay: Relay) -> None:
    assert relay.run("unload", stdin="n\n").exit_code == 1
    assert relay.unloaded == []
    assert relay.run("unload", stdin="y\n").exit_code == 0
    assert relay.unloaded == [("relay-a", str(relay.root))]


def test_unload_with_yes_does_not_ask(relay: Relay) -> None:
    found = relay.run("unload", "--yes")
    assert (found.exit_code, found.stdout) == (0, "")
    assert relay.unloaded == [("relay-a", str(relay.root))]


def test_unload_of_a_running_relay_is_refused(relay: Relay) -> None:
    with (relay.root / "relay-a.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = relay.run("unload", "--yes")
    assert found.exit_code == 1
    assert "stop it first: kill" in found.stderr
    assert relay.unloaded == []


def test_unload_under_a_daemon_with_another_lock_is_refused(relay: Relay) -> None:
    relay.datapath.beat(now())
    found = relay.run("unload", "--yes")
    assert found.exit_code == 1
    assert "its packet process is alive" in found.stderr
    assert relay.unloaded == []


def test_unload_of_nothing_is_done(relay: Relay) -> None:
    (relay.root / "ferryline/relay-a").rmdir()
    found = relay.run("unload", "--yes")
    assert found.exit_code == 0
    assert "nothing is pinned" in found.stderr
    assert relay.unloaded == []
