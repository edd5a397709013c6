"""Cells are judged by what the client's own file says, whatever the trial makes of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.interop.cells import COLUMNS, NO_RESTART, Client, Verdicts, rows
from tests.interop.clients import clients
from tests.interop.stage import Stage
from tests.report import judge


def client(verdicts: Verdicts, without: Mapping[str, str]) -> Client:
    def try_out() -> tuple[Verdicts, Mapping[str, Any]]:
        return verdicts, {}

    return Client("one", "One 1.0", try_out, without)


def test_a_client_without_faults_meets_every_target() -> None:
    measurement = client(dict.fromkeys(COLUMNS), {}).measurement()
    results = judge(measurement.targets, measurement.measure().values)
    assert all(result.ok for result in results)
    assert {result.target for result in results} == {"works, or n/a with its reason"}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_fault_misses_the_target_of_its_column_only(column: str) -> None:
    measurement = client(dict.fromkeys(COLUMNS) | {column: "n/a: no idea"}, {}).measurement()
    results = judge(measurement.targets, measurement.measure().values)
    assert [result.name for result in results if not result.ok] == [f"one_{column}"]


def test_a_column_that_nobody_judged_is_missed() -> None:
    measurement = client({}, {"restart": NO_RESTART}).measurement()
    found = measurement.measure().values
    assert found["one_connects"] == "fails: not tried"
    assert found["one_restart"] == NO_RESTART


def test_a_client_that_throws_fails_in_every_column_it_has() -> None:
    def broken() -> tuple[Verdicts, Mapping[str, Any]]:
        raise RuntimeError("no reply; and much more")

    measurement = Client("one", "One", broken, {"restart": NO_RESTART}).measurement()
    found = measurement.measure()
    assert found.values["one_audio"] == "fails: no reply"
    assert found.values["one_restart"] == NO_RESTART
    assert "much more" in found.detail["error"]


@pytest.mark.parametrize("without", [{"restart": "works"}, {"colour": "n/a: no"}])
def test_reasons_are_reasons_of_columns(without: Mapping[str, str]) -> None:
    with pytest.raises(ValueError, match="one"):
        client({}, without)


def test_the_page_has_a_row_for_each_client() -> None:
    every = clients(Stage())
    names = [each.name for each in every]
    assert len(set(names)) == len(names)
    found = rows({f"{names[0]}_connects": "works"}, every)
    assert len(found) == len(every)
    assert found[0][1:3] == ("works", "not tried")
