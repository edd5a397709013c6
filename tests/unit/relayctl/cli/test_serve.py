from collections.abc import Callable
from pathlib import Path

import pytest

from relayctl.config import RelayConfig
from relayctl.control import daemon
from relayctl.doctor.result import Result, fail
from tests.unit.relayctl.cli.conftest import Relay


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[RelayConfig]:
    """What the daemon was started with; it ends at once with code 1."""
    started: list[RelayConfig] = []

    def run(config: RelayConfig) -> int:
        started.append(config)
        return 1

    monkeypatch.setattr(daemon, "run", run)
    return started


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    """What is wrong with this host: nothing, unless a test adds to it."""
    found: list[Result] = []
    monkeypatch.setattr("relayctl.cli.serve.obstacles", lambda _: found)
    return found


def test_serve_ends_with_the_daemons_exit_code(relay: Relay, served: list[RelayConfig]) -> None:
    assert relay.run("serve").exit_code == 1
    assert served[0].instance == "relay-a"


def test_flags_override_the_file(relay: Relay, served: list[RelayConfig]) -> None:
    relay.run(
        *("serve", "--max-flows", "64", "--datapath", "socket", "--allow-inner-clients"),
        *("--admin", "10.2.0.1:9100", "--inner-ports", "4", "--instance", "relay-b"),
    )
    [config] = served
    assert (config.max_flows, config.datapath, config.allow_inner_clients) == (64, "socket", True)
    assert (config.admin, config.inner_ports) == (("10.2.0.1", 9100), 4)
    assert config.instance == "relay-b"


def test_a_flag_can_switch_off(relay: Relay, served: list[RelayConfig]) -> None:
    relay.config.write_text("allow_inner_clients = true\n" + relay.config.read_text())
    relay.run("serve", "--no-allow-inner-clients")
    assert not served[0].allow_inner_clients


def test_check_does_not_serve(relay: Relay, served: list[RelayConfig]) -> None:
    found = relay.run("serve", "--check")
    assert found.exit_code == 0
    assert found.stdout == (
        "flow tables: 48.2 MB for 262144 + 65536 flows (IPv4 + IPv6 clients)\nrelay-a: good\n"
    )
    assert served == []


def test_memory_is_told_before_it_is_taken(relay: Relay, served: list[RelayConfig]) -> None:
    assert "flow tables: 48.2 MB" in relay.run("serve").stderr
    assert "flow tables" not in relay.run("serve", "--datapath", "socket").stderr
    assert len(served) == 2


def test_check_names_what_is_wrong_with_the_host(
    relay: Relay, host: list[Result], served: list[RelayConfig]
) -> None:
    host.append(fail("xdp:outer0", "program 17 (evil\x1b) is attached", "stop it"))
    found = relay.run("serve", "--check")
    assert found.exit_code == 1
    assert "xdp:outer0: program 17 (evil\\x1b) is attached; stop it\n" in found.stderr
    assert "good" not in found.stdout
    assert served == []


def test_bad_configuration_is_wrong_usage(relay: Relay, served: list[RelayConfig]) -> None:
    found = relay.run("serve", "--inner-ports", "3")
    assert found.exit_code == 2
    assert "inner_ports = '3': has to be a power of two" in found.stderr
    assert served == []


@pytest.mark.parametrize("arguments", [["serve", "--check"], ["serve"]])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda keys: keys.unlink(), "keys_file = '{keys}': No such file or directory; make one"),
        (lambda keys: keys.write_text("1 abc"), "keys_file = '{keys}': line 1"),
    ],
)
def test_unusable_keys_are_wrong_usage(
    relay: Relay,
    served: list[RelayConfig],
    arguments: list[str],
    spoil: Callable[[Path], object],
    said: str,
) -> None:
    spoil(relay.keys)
    found = relay.run(*arguments)
    assert found.exit_code == 2
    assert said.format(keys=relay.keys) in found.stderr
    assert served == []


def test_missing_file_is_named(relay: Relay) -> None:
    found = relay.bare("serve", "--config", str(relay.root / "gone.toml"))
    assert found.exit_code == 2
    assert found.stderr.count("gone.toml") == 1


def test_without_a_file_the_missing_keys_and_the_default_place_are_named(relay: Relay) -> None:
    found = relay.bare("serve")
    assert found.exit_code == 2
    assert "keys_file: missing" in found.stderr
    assert f"there is no {relay.root}/no.toml; give a file with --config" in found.stderr


def test_advice_is_a_warning(relay: Relay) -> None:
    found = relay.run("serve", "--check", "--xdp-mode", "generic")
    assert found.exit_code == 0
    assert "warning: xdp_mode = 'generic'" in found.stderr
