import pytest

from tests.unit.relayctl.cli.conftest import Relay


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(relay: Relay, shell: str) -> None:
    found = relay.bare("completion", shell)
    assert found.exit_code == 0
    assert f"_RELAYCTL_COMPLETE={shell}_complete" in found.stdout


def test_unknown_shell(relay: Relay) -> None:
    assert relay.bare("completion", "tcsh").exit_code == 2
