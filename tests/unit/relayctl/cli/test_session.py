import dataclasses
from pathlib import Path

import click
import pytest

from relayctl.cli.session import ConfigError, Session
from relayctl.inspect import reader
from tests.unit.relayctl.cli.conftest import Relay


def test_place_comes_from_the_configuration(relay: Relay) -> None:
    place = dataclasses.replace(relay.session(), config=relay.config).place()
    assert place.instance == "relay-a"
    assert place.pins == relay.root / "ferryline/relay-a"
    assert place.socket == relay.root / "relay-a.sock"


def test_socket_option_wins(relay: Relay) -> None:
    session = dataclasses.replace(relay.session(), config=relay.config, socket=Path("/tmp/x.sock"))
    assert session.place().socket == Path("/tmp/x.sock")


def test_instance_alone_uses_default_directories(relay: Relay) -> None:
    place = dataclasses.replace(relay.session(), instance="relay-b").place()
    assert place.pins == Path("/sys/fs/bpf/ferryline/relay-b")
    assert place.socket == Path("/run/ferryline/relay-b.sock")


def test_socket_alone_names_the_instance(relay: Relay) -> None:
    place = dataclasses.replace(relay.session(), socket=Path("/tmp/relay-c.sock")).place()
    assert (place.instance, place.socket) == ("relay-c", Path("/tmp/relay-c.sock"))


def test_the_only_instance_need_not_be_named(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "instances", lambda: ["relay-d"])
    assert relay.session().place().instance == "relay-d"


@pytest.mark.parametrize(
    ("found", "told"), [([], "none is running"), (["a", "b"], "there are a, b")]
)
def test_which_relay_is_asked(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, found: list[str], told: str
) -> None:
    monkeypatch.setattr(reader, "instances", lambda: found)
    with pytest.raises(click.UsageError, match=told):
        relay.session().place()


def test_environment_counts(relay: Relay) -> None:
    session = Session(config=relay.config, environ={"FERRYLINE_RELAY_MAX_FLOWS": "64"})
    assert session.load_config().max_flows == 64


def test_file_that_is_no_text(relay: Relay) -> None:
    relay.config.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"relay\.toml"):
        dataclasses.replace(relay.session(), config=relay.config).load_config()
