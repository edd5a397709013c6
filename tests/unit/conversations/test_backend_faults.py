"""How the faults are judged; what they do is measured."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.conversations import backend_faults
from tests.conversations.backend_faults import FAULTS, Account, Fault
from tests.conversations.caller import Told
from tests.realtime_server.script import Script

DEAD = Fault("dead", Script(), frozenset({"backend_unavailable"}))


def account(*codes: str) -> Account:
    errors = [Told(0.0, {"type": "error", "error": {"code": code}}) for code in codes]
    found = Account()
    caller = cast(Any, SimpleNamespace(events=lambda kind: errors))
    backend_faults._judge_errors(DEAD, caller, found)
    return found


def test_the_errors_have_to_be_those_that_the_fault_wants() -> None:
    assert account("backend_unavailable", "backend_unavailable").untold == {}


@pytest.mark.parametrize("codes", [(), ("backend_overrun",), ("backend_unavailable", "other")])
def test_an_error_less_and_one_more_are_both_wrong(codes: tuple[str, ...]) -> None:
    assert list(account(*codes).untold) == ["dead"]


def test_all_faults_have_names_of_their_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) == 10
