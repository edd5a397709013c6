"""When everything moves to another path."""

import math

from transceiver.ice.path import Path, Round
from transceiver.ice.selection import CALM_S, HOLD_S, SETTLE_S, SILENT_S, Selection
from transceiver.ice.stun import Credentials

CREDENTIALS = Credentials("a" * 24, "p" * 22, "bbbb", "q" * 22)


def proven(key: str, heard: float = 100.0) -> Path:
    return Path(key, heard=heard, proof="ours")


def present(heard: float = 100.0) -> tuple[Selection, Path]:
    selection, path = Selection(), proven("present", heard)
    path.consent_due = 105.0
    selection.present = path
    return selection, path


def test_the_first_proof_selects_whatever_it_is() -> None:
    assert Selection().proven(proven("p"), 100.0)


def test_a_proof_of_the_present_path_moves_nothing() -> None:
    selection, path = present()
    assert not selection.proven(path, 100.0)
    assert not selection.proven(proven("other"), 100.0)


def test_a_nomination_before_any_selection_waits() -> None:
    path = Path("p")
    assert not Selection().nominate(path, True, 100.0)
    assert path.nomination_waits


def test_a_first_nomination_moves_even_at_the_heels_of_another() -> None:
    selection, path = present()
    assert not selection.nominate(path, True, 100.0)
    assert selection.nominate(proven("other"), True, 100.0)


def test_a_repeated_nomination_respects_a_hold_that_doubles() -> None:
    selection, path = present()
    other = proven("other")
    other.nominated = 1.0
    hold = HOLD_S
    for _ in range(3):
        path.nominated = 100.0
        assert not selection.nominate(other, True, 100.0 + hold - 0.01)
        assert selection.nominate(other, True, 100.0 + hold)
        hold *= 2


def test_the_hold_is_short_again_after_a_calm_time() -> None:
    selection, path = present()
    other = proven("other")
    other.nominated = 1.0
    for when in (100.0, 110.0, 120.0):
        path.nominated = when - 9.0
        assert selection.nominate(other, True, when)
    path.nominated = 120.0 + CALM_S - HOLD_S - 0.01
    assert not selection.nominate(other, True, 120.0 + CALM_S - 0.01)
    path.nominated = 120.0 + 2 * CALM_S - HOLD_S
    assert selection.nominate(other, True, 120.0 + 2 * CALM_S)


def test_a_waiting_nomination_gives_way_to_a_newer_one() -> None:
    selection, path = present()
    other = proven("other")
    selection.nominate(other, False, 100.0)
    path.nominated = 101.0
    assert not selection.proven(other, 102.0)
    path.nominated = 99.0
    assert selection.proven(other, 102.0)


def test_media_moves_at_the_second_packet_that_nothing_came_between() -> None:
    selection, path = present(heard=100.0)
    other = proven("other")
    assert not selection.media(other, 100.02)
    path.heard = 100.03
    assert not selection.media(other, 100.04)
    assert selection.media(other, 100.06)


def test_media_does_not_undo_a_nomination_at_once() -> None:
    selection, path = present()
    path.nominated = 100.0
    other = proven("other")
    other.media = 100.0 + SETTLE_S
    assert not selection.media(other, 100.6)
    assert selection.media(other, 100.7)


def test_media_moves_nothing_while_nothing_is_selected() -> None:
    other = proven("other")
    selection = Selection()
    assert not selection.media(other, 1.0)
    assert not selection.media(other, 2.0)


def test_proof_after_media_moves_only_when_the_present_path_was_silent() -> None:
    selection, path = present(heard=100.0)
    other = Path("other", media=100.5)
    assert selection.proven(other, 100.6)
    path.heard = 100.55
    other.proof = path.proof
    assert not selection.proven(other, 100.6)


def test_a_lost_path_is_left_for_any_that_answers() -> None:
    selection, path = present()
    other = proven("other")
    assert not selection.abandons(other)
    path.lost = 101.0
    assert selection.abandons(other)
    assert not selection.abandons(path)
    assert selection.proven(other, 101.0)
    assert not Selection().abandons(other)


def test_the_first_proof_of_a_restart_moves_when_the_old_path_is_silent() -> None:
    selection, _ = present(heard=100.0)
    other = Path("other", proof="new")
    assert not selection.proven(other, 100.0 + SILENT_S - 0.01)
    assert selection.proven(other, 100.0 + SILENT_S)


def test_consent_is_due_as_planned_or_when_another_path_outlives_the_present_one() -> None:
    selection, path = present(heard=100.0)
    other = proven("other", heard=99.0)
    assert selection.ask_due([path, other]) == 105.0
    other.heard = 100.5
    assert selection.ask_due([path, other]) == 101.0
    other.proof = None
    assert selection.ask_due([path, other]) == 105.0
    other.proof, path.lost = "ours", 101.0
    assert selection.ask_due([path, other]) == 105.0
    path.round = Round(CREDENTIALS, consent=True, began=100.0, due=100.5)
    assert selection.ask_due([path, other]) == math.inf
    assert Selection().ask_due([]) == math.inf
