"""A report fails what was missed and what was not measured, and can be read back."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from tests.report import Relation, Target, Value, judge, table, write

TARGETS = (
    Target("loss", "=", 0, "packets"),
    Target("share", "≥", 99.5, "%"),
    Target("remote", "=", "203.0.113.10:3478"),
)
GOOD: dict[str, Value] = {"loss": 0, "share": 99.8, "remote": "203.0.113.10:3478"}


@pytest.mark.parametrize(
    ("relation", "value", "met"),
    [
        ("≥", 5, True),
        ("≥", 4.9, False),
        ("≤", 5, True),
        ("≤", 5.1, False),
        (">", 5, False),
        ("<", 5, False),
        ("<", 4, True),
        ("=", 5, True),
        ("=", 6, False),
        ("≥", None, False),
        ("=", None, False),
    ],
)
def test_a_bound_is_met_or_not(relation: Relation, value: Value, met: bool) -> None:
    assert Target("figure", relation, 5).met(value) is met


def test_every_target_has_a_result_and_the_missing_one_failed() -> None:
    results = judge(TARGETS, {"loss": 0, "share": 99.8})
    assert [(r.name, r.ok) for r in results] == [("loss", True), ("share", True), ("remote", False)]
    assert results[1].target == "≥ 99.5"


def test_a_misspelt_figure_is_an_error() -> None:
    with pytest.raises(KeyError, match="no target named shore"):
        judge(TARGETS, {"shore": 100})


def test_text_is_not_compared_in_size() -> None:
    with pytest.raises(TypeError, match="share: 'many'"):
        Target("share", "≥", 5).met("many")


@pytest.mark.parametrize(("values", "ok"), [(GOOD, True), ({**GOOD, "loss": 1}, False)])
def test_the_file_says_command_machine_versions_and_verdict(
    tmp_path: Path, values: dict[str, Value], ok: bool
) -> None:
    write(tmp_path / "new" / "report.json", "make demo", judge(TARGETS, values), datapath="socket")
    report = json.loads((tmp_path / "new" / "report.json").read_text())
    assert report["command"] == "make demo"
    assert report["ok"] is ok
    assert report["datapath"] == "socket"
    assert report["machine"]["cores"] >= 1
    assert report["versions"]["aiortc"]
    assert report["results"][1] == {
        "name": "share",
        "value": 99.8,
        "unit": "%",
        "target": "≥ 99.5",
        "ok": True,
    }


def test_the_table_names_what_failed() -> None:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(table("demo", judge(TARGETS, {"loss": 2, "share": 99.8})))
    text = console.export_text()
    assert text.count("FAILED") == 2
    assert "2 packets" in text
    assert "not measured" in text
