"""The target from its arguments to its report, with guests played by functions of ours."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kernels import judge, machine, run
from tests.kernels.archive import Image
from tests.kernels.controls import CONTROLS
from tests.kernels.install import Unavailable
from tests.kernels.machine import Boot, NoClosingLine
from tests.kernels.series import MATRIX, Package, Series


def findings(series: Series) -> dict[str, Any]:
    """What a guest finds where all is well."""
    return {
        "kernel": f"{series.name}.9-cloud-amd64",
        "boot_seconds": 3.2,
        "controls": {each.name: each.accepted_by(series.version) for each in CONTROLS},
        "load": {"instructions": 97326, "wall_seconds": 30.1},
        "attach": {"native": "xdp-native", "generic": "xdp-generic"},
        "vlan": {"hit": "ok"},
        "tests": {"status": 0, "passed": 150, "failed": [], "skipped": []},
    }


class Kernels:
    """Stands for the archive: every kernel is there."""

    def __init__(self, root: Path) -> None:
        pass

    def fetch(self, wanted: Sequence[Series], *, refresh: bool = False) -> list[Image]:
        return [
            Image(series, Package("linux-image", f"{series.name}.9-1"), Path("/vmlinuz"), ())
            for series in wanted
        ]


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the reports go. Every guest is well."""
    monkeypatch.setattr(run, "REPOSITORY", tmp_path)
    monkeypatch.setattr(run, "OUTPUT", tmp_path / "out")
    monkeypatch.setattr(run, "BUSYBOX", Path("/bin/true"))
    monkeypatch.setattr(run, "Archive", Kernels)
    monkeypatch.setattr(run, "install", list)

    def guest(boot: Boot, directory: Path) -> dict[str, Any]:
        (series,) = (each for each in MATRIX if each.name == directory.name)
        return findings(series)

    monkeypatch.setattr(machine, "run", guest)
    return tmp_path / "out"


def test_a_good_run_has_an_entry_for_each_kernel(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main([]) == 0
    report = json.loads((output / "report.json").read_text())
    assert report["ok"]
    assert {result["name"]: result["value"] for result in report["results"]} == {
        series.name: judge.ALL_PASS for series in MATRIX
    }
    assert report["kernels"]["6.1"]["load"]["instructions"] == 97326
    said = capsys.readouterr().out
    for cell in ("97,326", "native, generic", "150 passed", "1 of 1"):
        assert cell in said


def test_one_kernel_alone_is_a_partial_report(output: Path) -> None:
    assert run.main(["--kernel", "6.12"]) == 0
    report = json.loads((output / "partial.json").read_text())
    assert [result["name"] for result in report["results"]] == ["6.12"]
    assert not (output / "report.json").exists()


def test_a_guest_without_a_closing_line_fails_the_run(
    output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dead(boot: Boot, directory: Path) -> dict[str, Any]:
        raise NoClosingLine("no closing line; the console ends so:\nKernel panic")

    monkeypatch.setattr(machine, "run", dead)
    assert run.main(["--kernel", "6.1"]) == 1
    report = json.loads((output / "partial.json").read_text())
    assert not report["ok"]
    assert "Kernel panic" in report["results"][0]["value"]
    assert "Kernel panic" in capsys.readouterr().out


def test_what_a_kernel_does_wrong_fails_the_run(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = findings(Series("6.1")) | {"load": {"error": "DatapathError: refused"}}
    monkeypatch.setattr(machine, "run", lambda boot, directory: wrong)
    assert run.main(["--kernel", "6.1"]) == 1


def test_a_machine_that_cannot(
    output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> list[str]:
        raise Unavailable("missing Debian packages: busybox-static")

    monkeypatch.setattr(run, "install", refuse)
    assert run.main([]) == 2
    assert "busybox-static" in capsys.readouterr().out


def test_a_kernel_that_is_not_in_the_matrix(output: Path) -> None:
    with pytest.raises(SystemExit) as refused:
        run.main(["--kernel", "4.19"])
    assert refused.value.code == 2
