import pytest

from tests.conversations import run
from tests.conversations.effort import FULL, QUICK


def test_every_target_belongs_to_one_measurement() -> None:
    names = [target.name for each in run.catalogue(FULL) for target in each.targets]
    assert len(names) == len(set(names))
    assert {"events_valid", "barge_in_p95", "append_p95", "backend_back"} <= set(names)


def test_a_full_run_makes_what_the_targets_ask_for() -> None:
    assert FULL.conversations == 100 > QUICK.conversations
    assert FULL.interruptions * 4 >= 50


def test_an_unknown_name_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.SUITE.main(["--only", "nonsense"]) == 2
    assert "no measurement 'nonsense'" in capsys.readouterr().out
