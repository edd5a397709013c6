from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from relayctl.cli.main import cli
from relayctl.cli.session import Session
from tests.unit.relayctl.cli.conftest import Relay
from tests.unit.relayctl.local_relay import LocalRelay


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalRelay]:
    relay = LocalRelay(tmp_path)
    try:
        relay.start()
        yield relay
    finally:
        relay.close()


def run(local: LocalRelay, *arguments: str) -> Result:
    command = ["--config", str(local.config_file), *arguments]
    return CliRunner().invoke(cli, command, obj=Session(environ={}))


def test_drain_and_undrain(local: LocalRelay) -> None:
    found = run(local, "drain", "--wait", "--deadline", "5")
    assert (found.exit_code, found.stdout) == (0, "")
    assert "quiet" in found.stderr
    assert local.admin.get("/readyz").status_code == 503
    assert "draining" in run(local, "status").stdout
    found = run(local, "undrain")
    assert (found.exit_code, found.stderr) == (0, "ready\n")
    assert local.admin.get("/readyz").status_code == 200


def test_without_a_daemon_nobody_drains(relay: Relay) -> None:
    found = relay.run("drain")
    assert found.exit_code == 1
    assert "only a running daemon drains" in found.stderr


def test_a_bad_deadline_is_wrong_usage(relay: Relay) -> None:
    assert relay.run("drain", "--deadline", "-1").exit_code == 2
