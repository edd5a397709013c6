"""Where the agent sends: nominations, the client's media, silent paths."""

import pytest

from tests.unit.transceiver.ice.wire import (
    A,
    B,
    Wire,
    connect,
)
from transceiver.ice import (
    Forgotten,
    Proven,
    Selected,
)

# Nomination


def test_a_nomination_moves_to_a_proven_path(wire: Wire) -> None:
    connect(wire, A, B)
    wire.check(B, nominate=True)
    wire.run(0.5)
    assert wire.selections() == [B]
    assert wire.agent.moves == 1


def test_a_check_without_nomination_moves_nothing(wire: Wire) -> None:
    connect(wire, A)
    wire.every(2.0, lambda: wire.check(A, nominate=True))
    wire.every(0.05, lambda: wire.check(B))
    wire.run(10.0)
    assert Proven(B) in wire.events(Proven)
    assert wire.selections() == []


def test_a_nomination_waits_for_its_proof(wire: Wire) -> None:
    connect(wire, A)
    wire.mute.add(B)
    wire.check(B, nominate=True)
    wire.run(2.5)
    assert wire.selections() == []
    wire.mute.clear()
    wire.check(B)
    wire.run(0.5)
    assert wire.selections() == [B]


def test_of_two_waiting_nominations_the_later_one_wins(wire: Wire) -> None:
    connect(wire, A)
    wire.mute |= {B, "c"}
    wire.check(B, nominate=True)
    wire.run(0.1)
    wire.check("c", nominate=True)
    wire.run(2.5)
    wire.mute.clear()
    wire.check("c")
    wire.run(0.3)
    wire.check(B)
    wire.run(0.5)
    assert wire.selections() == ["c"]


def test_two_paths_nominated_in_turn_do_not_flap(wire: Wire) -> None:
    connect(wire, A, B)
    wire.every(0.1, lambda: wire.check(A, nominate=True))
    wire.every(0.1, lambda: wire.check(B, nominate=True), first=0.05)
    wire.run(20.0)
    assert wire.selections() == [B]


def test_two_paths_nominated_slowly_for_ever_settle(wire: Wire) -> None:
    connect(wire, A, B)
    wire.every(2.5, lambda: wire.check(A, nominate=True))
    wire.every(2.5, lambda: wire.check(B, nominate=True), first=1.25)
    wire.run(120.0)
    late = [when for when, event in wire.log if isinstance(event, Selected) and when > 1015.0]
    assert late == []
    assert wire.agent.moves <= 4


def test_a_client_may_return_to_a_path_it_nominated_before(wire: Wire) -> None:
    connect(wire, A, B)
    for path in (B, A, B, A):
        wire.check(path, nominate=True)
        wire.run(5.0)
    assert wire.selections() == [B, A, B, A]


def test_media_in_flight_does_not_undo_a_nomination(wire: Wire) -> None:
    connect(wire, A, B)
    sender = [A]
    wire.every(0.02, lambda: wire.media(sender[0]))
    wire.run(1.0)
    wire.check(B, nominate=True)
    wire.at(0.2, lambda: sender.__setitem__(0, B))
    wire.run(3.0)
    assert wire.selections() == [B]


# Media


def test_media_from_another_proven_path_moves(wire: Wire) -> None:
    connect(wire, A, B)
    wire.every(0.02, lambda: wire.media(B))
    wire.run(1.0)
    assert wire.selections() == [B]


def test_one_overtaken_packet_moves_nothing(wire: Wire) -> None:
    connect(wire, A, B)
    wire.every(0.02, lambda: wire.media(A))
    wire.every(0.1, lambda: wire.media(B), first=0.01)
    wire.run(2.0)
    assert wire.selections() == []


def test_late_packets_move_nothing(wire: Wire) -> None:
    connect(wire, A, B)
    wire.every(0.02, lambda: wire.media(B, newest=False))
    wire.run(0.4)
    assert wire.selections() == []


def test_a_rebound_client_is_found_by_its_media(wire: Wire) -> None:
    connect(wire, A)
    wire.every(0.02, lambda: wire.media(A))
    wire.run(2.0)
    wire.dead.add(A)
    began = wire.now
    wire.every(0.02, lambda: wire.media(B))
    wire.run(1.0)
    assert wire.selections() == [B]
    moved = next(when for when, event in wire.log if isinstance(event, Selected))
    assert moved - began == pytest.approx(3 * wire.delay)  # packet, check, answer


def test_a_hint_that_is_not_answered_moves_nothing(wire: Wire) -> None:
    connect(wire, A)
    wire.mute.add(B)
    wire.every(1.0, lambda: wire.check(A))
    wire.agent.hint(B, wire.now)
    wire.run(5.0)
    assert len(wire.asked(B)) == 3
    assert wire.selections() == []


def test_a_hint_is_void_when_the_present_path_spoke_since(wire: Wire) -> None:
    connect(wire, A)
    wire.every(0.02, lambda: wire.media(A))
    wire.run(0.1)
    wire.agent.hint(B, wire.now)
    wire.run(1.0)
    assert wire.events(Proven) == [Proven(B)]
    assert wire.selections() == []


def test_a_rebind_every_two_seconds_is_followed(wire: Wire) -> None:
    connect(wire, "p0")
    wire.every(0.02, lambda: wire.media(f"p{int(wire.now - 1000) // 2}"))

    def rebind() -> None:
        wire.dead |= {f"p{number}" for number in range(int(wire.now - 1000) // 2)}

    wire.every(0.01, rebind)
    wire.run(90.0)
    assert wire.agent.selected == "p45"
    assert wire.agent.moves == 45
    forgotten = wire.events(Forgotten)
    assert len(forgotten) == 46 - 16
    assert Forgotten("p45") not in forgotten


# Silence


def test_a_muted_client_with_two_interfaces_stays_where_it_is(wire: Wire) -> None:
    connect(wire, A, B)
    wire.every(2.5, lambda: wire.check(A, nominate=True))
    wire.every(25.0, lambda: wire.check(B))
    wire.run(70.0)
    assert wire.selections() == []
    assert wire.agent.moves == 0


def test_a_silent_path_is_asked_at_once_while_another_lives(wire: Wire) -> None:
    connect(wire, A, B)
    wire.run(1.6)  # A is silent, and so is B
    assert wire.asked(A) == []
    wire.check(B)
    wire.run(0.1)
    assert len(wire.asked(A)) == 1


def test_three_unanswered_consents_move_to_a_living_path(wire: Wire) -> None:
    connect(wire, A, B)
    wire.dead.add(A)
    wire.every(0.5, lambda: wire.check(B))
    began = wire.now
    wire.run(10.0)
    assert wire.selections() == [B]
    moved = next(when for when, event in wire.log if isinstance(event, Selected))
    assert moved - began < 3.0
    asked = wire.asked(A)[:3]
    pace = round(asked[1] - asked[0], 3)
    assert 0 < pace <= 2 * 0.04  # two round trips: the client waits elsewhere
    assert [round(when - asked[0], 3) for when in asked] == [0.0, pace, 2 * pace]
    assert len({m.transaction_id for _, where, m in wire.sent if where == A}) == 3


def test_a_path_that_asks_but_never_answers_is_left(wire: Wire) -> None:
    connect(wire, A, B)
    wire.mute.add(A)
    wire.every(0.5, lambda: wire.check(A))
    wire.run(10.0)
    assert wire.selections() == [B]


def test_a_path_with_media_is_not_left_for_its_missing_answers(wire: Wire) -> None:
    connect(wire, A, B)
    wire.mute.add(A)
    wire.every(0.02, lambda: wire.media(A))
    wire.every(1.0, lambda: wire.check(B))
    wire.run(20.0)
    assert wire.selections() == []


def test_a_lost_path_gives_way_to_one_that_appears_later(wire: Wire) -> None:
    connect(wire, A)
    wire.dead.add(A)
    wire.run(8.0)
    assert wire.selections() == []
    wire.check(B)
    wire.run(0.5)
    assert wire.selections() == [B]


def test_a_lost_path_gives_way_to_an_old_one_that_wakes(wire: Wire) -> None:
    connect(wire, A, B)
    wire.dead |= {A, B}
    wire.run(8.0)
    wire.dead.discard(B)
    wire.check(B)
    wire.run(0.2)
    assert wire.selections() == [B]


def test_a_path_that_was_left_is_taken_as_new_when_it_is_nominated(wire: Wire) -> None:
    connect(wire, A, B)
    wire.dead.add(A)
    wire.every(0.5, lambda: wire.check(B))
    wire.run(5.0)
    wire.dead.clear()
    wire.check(A, nominate=True)
    wire.run(1.0)
    assert wire.selections() == [B, A]


def test_a_lost_path_that_answers_again_is_kept(wire: Wire) -> None:
    connect(wire, A)
    wire.mute.add(A)
    wire.every(0.5, lambda: wire.check(A))
    wire.run(8.0)
    wire.mute.clear()
    wire.run(6.0)
    wire.check(B)
    wire.run(0.5)
    assert wire.events(Proven) == [Proven(B)]
    assert wire.selections() == []


def test_unproven_paths_are_not_asked_for_a_lost_one(wire: Wire) -> None:
    connect(wire, A)
    wire.mute.add(B)
    wire.check(B)
    wire.dead.add(A)
    wire.run(9.0)
    assert len(wire.asked(A)) >= 3
    assert len(wire.asked(B)) == 3  # for its own check
