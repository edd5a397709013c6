import pytest

from tests.conversations.own_echo import OVER_S, Turn, call, call_with_headphones
from transceiver.turns.vad import Stock

STOCK = Stock("silero", spare=1)


@pytest.mark.parametrize("number", [0, 9])
def test_its_own_voice_interrupts_nothing(number: int) -> None:
    turns = list(call(number, STOCK, turns=2))
    assert len(turns) == 2
    assert [turn.started for turn in turns] == [[], []]


def test_unguarded_the_same_voice_does() -> None:
    assert any(turn.cleared for turn in call(0, STOCK, guarded=False, turns=2))


def test_a_caller_who_talks_over_it_does() -> None:
    assert [turn.heard for turn in call(3, STOCK, talks=True, turns=2)] == [True, True]


@pytest.mark.parametrize("number", [1, 14])
def test_the_guard_costs_who_wears_headphones_nothing(number: int) -> None:
    guarded, unguarded = (
        [turn.cleared for turn in call_with_headphones(number, STOCK, overs=3, guarded=guarded)]
        for guarded in (True, False)
    )
    assert all(guarded)
    assert guarded == unguarded


@pytest.mark.parametrize(
    ("turn", "heard"),
    [
        (Turn(over_s=0.5, cleared=[0.6]), True),
        (Turn(over_s=0.5, cleared=[0.4, 0.6]), False),
        (Turn(over_s=0.5, started=[0.6]), False),
        (Turn(over_s=0.5, cleared=[0.6 + OVER_S]), False),
        (Turn(cleared=[0.6]), False),
    ],
)
def test_heard_is_who_silences_it_while_he_speaks(turn: Turn, heard: bool) -> None:
    assert turn.heard is heard
