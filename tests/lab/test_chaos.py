"""Some faults of `make chaos` with few calls: what is lost is counted, nothing is timed."""

import dataclasses
from collections.abc import Iterator

import pytest

from tests.chaos import relays, two_relays
from tests.chaos.engine import Cast, Theatre
from tests.figures.measurement import Findings

CALLS = 4
SECONDS = 3.0
SCENARIOS = {each.name: each for each in (*relays.scenarios(), *two_relays.scenarios())}


@pytest.fixture(scope="module")
def theatre(lab_prefix: str) -> Iterator[Theatre]:
    with Theatre(Cast(lab_prefix, seed=1, lean=CALLS, browsers=False)) as theatre:
        yield theatre


def play(theatre: Theatre, name: str) -> Findings:
    found = theatre.play(dataclasses.replace(SCENARIOS[name], seconds=SECONDS))
    assert found.detail["calls"] == CALLS
    assert all(one[way]["sent"] for one in found.detail["accounts"] for way in ("up", "down"))
    return found


def test_the_program_carries_calls_while_its_daemon_is_away(theatre: Theatre) -> None:
    values = play(theatre, "daemon_upgraded").values
    assert values == dict.fromkeys(values, 0)


@pytest.mark.parametrize("name", ["wiped_agent_speaks", "relay_gone"])
def test_calls_go_on_without_the_relay_that_knew_them(theatre: Theatre, name: str) -> None:
    found = play(theatre, name)
    assert found.detail["whole"]["lost_up"] > 0  # it was a fault
    assert found.values[f"{name}_calls_lost"] == 0
