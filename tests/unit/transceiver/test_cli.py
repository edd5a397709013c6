import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from relayctl.wire.address import Address
from tests.unit.transceiver.live import KEYS
from transceiver import host, workers
from transceiver.cli import cli
from transceiver.worker import Command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    keys = tmp_path / "route.keys"
    keys.write_text(KEYS)
    config = tmp_path / "transceiver.toml"
    config.write_text(
        f'listen = "127.0.0.1:5000"\ninner = "plain"\ncluster = 7\nmint = 1\nkeys_file = "{keys}"\n'
    )
    return config


def serve(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["serve", *arguments])


def test_check_says_that_all_is_good(file: Path) -> None:
    result = serve("--config", str(file), "--check")
    assert (result.exit_code, result.output) == (0, "configuration is good\n")


def test_check_names_the_ports_of_workers(file: Path) -> None:
    result = serve("--config", str(file), "--check", "--workers", "4")
    assert result.exit_code == 0
    assert "4 workers: relays have to allow ports 5000-5003" in result.output
    result = serve("--config", str(file), "--check", "--workers", "3", "--listen", "[::1]:65534")
    assert result.exit_code == 2
    assert "would go from 65534 to 65536" in result.output


def test_a_worker_is_told_what_we_were_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[list[str]] = []

    def run(endpoints: tuple[Address, ...], command: Command) -> None:
        told.extend(list(command(endpoint, 9)) for endpoint in endpoints)

    monkeypatch.setattr(workers, "run", run)
    monkeypatch.setattr(host, "try_ports", lambda config: None)
    given = ["--config", str(file), "--capacity", "7", "--log-level", "error"]
    assert serve(*given, "--workers", "2").exit_code == 0
    ends = ["--workers", "1", "--beat", "9", str(os.getpid())]
    own = [["--listen", f"127.0.0.1:{port}", *ends] for port in (5000, 5001)]
    start = [sys.executable, "-m", "transceiver", "serve"]
    assert told == [[*start, *given, *each] for each in own]


def test_flags_go_over_the_environment_and_that_over_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRYLINE_TRANSCEIVER_CAPACITY", "0")
    assert serve("--config", str(file), "--check").exit_code == 2
    assert serve("--config", str(file), "--check", "--capacity", "5").exit_code == 0


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param("colour = 1", "colour: unknown key", id="unknown_key"),
        pytest.param("mint = 3", "Cannot overwrite", id="no_toml"),
    ],
)
def test_a_bad_file_is_wrong_usage(file: Path, line: str, fault: str) -> None:
    file.write_text(file.read_text() + line)
    result = serve("--config", str(file), "--check")
    assert result.exit_code == 2
    assert fault in result.output


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = serve("--config", str(tmp_path / "none.toml"))
    assert result.exit_code == 2
    assert "none.toml" in result.output


def test_a_missing_key_is_named_by_check(file: Path) -> None:
    file.write_text(file.read_text().replace("mint = 1", "mint = 9"))
    result = serve("--config", str(file), "--check")
    assert result.exit_code == 2
    assert "mint = 9" in result.output
