from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from relayctl.wire.route_token import render_key
from signaling.__main__ import main
from signaling.access import config as access_config
from tests.unit.signaling.fake_transceiver import CONFIG, CONTROL_TOKEN, KEY, configuration


def run(tmp_path: Path, text: str, *flags: str, environ: dict[str, str] | None = None) -> Result:
    (tmp_path / "route.keys").write_text(render_key(KEY))
    file = tmp_path / "s.toml"
    file.write_text(text.replace("/nowhere", str(tmp_path)))
    command = ["serve", "--config", str(file), "--check", *flags]
    return CliRunner().invoke(main, command, env=environ)


def test_check_of_a_good_configuration(tmp_path: Path) -> None:
    result = run(tmp_path, CONFIG, "--tls-self-signed", "a.example", "--listen", "fd:3")
    assert (result.exit_code, result.output) == (0, "configuration is good\n")


@pytest.mark.parametrize(
    ("text", "flags", "environ", "fault"),
    [
        ("listen = [", (), {}, "configuration is no TOML"),
        (CONFIG, ("--listen", "8080"), {}, "listen = '8080': '8080' is no address"),
        (CONFIG, ("--tls-self-signed", "a b"), {}, "'a b' is no host name"),
        (
            CONFIG,
            (),
            {"FERRYLINE_SIGNALING_LISTN": "x"},
            "did you mean FERRYLINE_SIGNALING_LISTEN?",
        ),
        (CONFIG.replace("/nowhere/route", "/nowhere/other"), (), {}, "other.keys': No such file"),
    ],
)
def test_check_of_a_bad_one(
    tmp_path: Path, text: str, flags: tuple[str, ...], environ: dict[str, str], fault: str
) -> None:
    result = run(tmp_path, text, *flags, environ=environ)
    assert result.exit_code == 2
    assert fault in result.output
    assert CONTROL_TOKEN not in result.output


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["serve", "--config", str(tmp_path / "none.toml")])
    assert result.exit_code == 2
    assert "none.toml': No such file" in result.output


def test_wrong_usage_is_2() -> None:
    assert CliRunner().invoke(main, ["serve", "--nonsense"]).exit_code == 2


def test_a_new_key_and_its_section() -> None:
    first, second = (CliRunner().invoke(main, ["key", "shop"]).output for _ in range(2))
    assert first != second
    text = first.splitlines()[0].split()[-1]
    assert text.startswith("sk-fl-")
    rules = access_config.rules(configuration(CONFIG + first))
    key = rules.keys.find(text)
    assert key is not None
    assert key.subject == "shop"
    assert text not in "".join(first.splitlines()[1:])


def test_a_subject_that_is_none() -> None:
    result = CliRunner().invoke(main, ["key", "a b"])
    assert (result.exit_code, "SUBJECT" in result.output) == (2, True)
