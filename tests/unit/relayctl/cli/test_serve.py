import pytest

from relayctl.config import RelayConfig
from relayctl.control import daemon
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
    assert found.stdout == "relay-a: good; max_flows = 262144 takes 37.7 MB\n"
    assert served == []


def test_bad_configuration_is_wrong_usage(relay: Relay, served: list[RelayConfig]) -> None:
    found = relay.run("serve", "--inner-ports", "3")
    assert found.exit_code == 2
    assert "inner_ports = '3': has to be a power of two" in found.stderr
    assert served == []


def test_check_reads_the_keys(relay: Relay) -> None:
    relay.keys.unlink()
    found = relay.run("serve", "--check")
    assert found.exit_code == 2
    assert f"keys_file = no {relay.keys}; relayctl token keygen" in found.stderr


def test_missing_file_is_named(relay: Relay) -> None:
    found = relay.bare("serve", "--config", str(relay.root / "gone.toml"))
    assert found.exit_code == 2
    assert "gone.toml" in found.stderr


def test_without_a_file_the_missing_keys_and_the_default_place_are_named(relay: Relay) -> None:
    found = relay.bare("serve")
    assert found.exit_code == 2
    assert "keys_file: missing" in found.stderr
    assert f"there is no {relay.root}/no.toml; give a file with --config" in found.stderr


def test_advice_is_a_warning(relay: Relay) -> None:
    found = relay.run("serve", "--check", "--xdp-mode", "generic")
    assert found.exit_code == 0
    assert "warning: xdp_mode = 'generic'" in found.stderr
