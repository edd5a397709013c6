from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.transceiver.live import KEYS
from transceiver.cli import cli


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
