import click
import pytest

from relayctl.cli.main import cli
from tests.unit.relayctl.cli.conftest import Relay

COMMANDS = {
    "serve",
    "status",
    "flows",
    "stats",
    "top",
    "nexthops",
    "clusters",
    "token",
    "doctor",
    "drain",
    "undrain",
    "unload",
    "completion",
}


def test_verbs() -> None:
    assert cli.commands.keys() == COMMANDS


def leaves(group: click.Group) -> list[click.Command]:
    found: list[click.Command] = []
    for command in group.commands.values():
        found += leaves(command) if isinstance(command, click.Group) else [command]
    return found


@pytest.mark.parametrize("command", leaves(cli), ids=lambda command: command.name)
def test_every_verb_says_what_it_does(command: click.Command) -> None:
    assert command.help


def test_unknown_verb_is_wrong_usage(relay: Relay) -> None:
    assert relay.bare("flow").exit_code == 2


def test_help_names_the_exit_codes(relay: Relay) -> None:
    found = relay.bare("-h")
    assert found.exit_code == 0
    assert "Exit codes: 0 done, 1 failed, 2 wrong usage" in found.stdout


def test_version(relay: Relay) -> None:
    assert relay.bare("--version").stdout.startswith("relayctl, version ")
