"""A table that is full, keys that are changed: calls go on, and newcomers get a clear answer."""

import pytest

from tests.report import judge
from tests.siege import full_table, key_rotation, stage


@pytest.fixture(autouse=True)
def _prefix(lab_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PREFIX", lab_prefix)


def test_a_full_table_refuses_newcomers_and_keeps_its_flows() -> None:
    assert full_table.measure(3, fall_silent=False).values == {
        "full_table_let_in": 0,
        "full_table_refusals_shown": True,
        "full_table_lost": 0,
        "full_table_let_in_later": 3,
    }


@pytest.mark.slow
def test_keys_change_under_calls() -> None:
    results = judge(key_rotation.TARGETS, key_rotation.measure().values)
    assert [result for result in results if not result.ok] == []
