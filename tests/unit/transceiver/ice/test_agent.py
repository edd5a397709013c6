"""The agent and a client: connecting, limits, ownership of paths."""

import functools

import pytest
from aioice import stun as oracle

from tests.unit.transceiver.ice.wire import (
    CLIENT,
    OURS,
    A,
    B,
    Wire,
    answer,
    check,
    connect,
)
from transceiver.ice import (
    Agent,
    Asked,
    Forgotten,
    Proven,
    Selected,
    Settled,
)

# Connecting


def test_a_new_agent_sends_nothing_and_waits_for_ever(agent: Agent) -> None:
    agent.timer(5000.0)
    assert agent.next_deadline() == float("inf")
    assert (agent.datagrams, agent.events) == ([], [])
    assert (agent.selected, agent.rtt_ms, agent.moves) == (None, None, 0)
    assert dict(agent.creds) == {OURS.ufrag: OURS}


def test_a_check_is_answered_and_asked_back(agent: Agent) -> None:
    assert agent.receive(check(transaction_id=b"t" * 12), A, CLIENT, 1.0) is None
    (first, to), (second, also_to) = agent.datagrams
    success, ours = oracle.parse_message(first), oracle.parse_message(second)
    assert (to, also_to) == (A, A)
    assert success.message_class is oracle.Class.RESPONSE
    assert success.transaction_id == b"t" * 12
    assert success.attributes["XOR-MAPPED-ADDRESS"] == CLIENT
    assert ours.message_class is oracle.Class.REQUEST
    assert agent.events == [Asked(A, ours.transaction_id)]
    assert list(agent.outstanding()) == [(A, ours.transaction_id)]
    assert agent.selected is None


def test_the_first_path_that_answers_is_selected_before_any_nomination(wire: Wire) -> None:
    wire.check(A)
    wire.run(1.0)
    assert wire.selections() == [A]
    assert wire.agent.selected == A
    kinds = [type(event) for _, event in wire.log]
    assert kinds == [Asked, Settled, Proven, Selected]
    assert wire.agent.rtt_ms == pytest.approx(40.0)
    assert list(wire.agent.outstanding()) == []
    assert wire.drops == []


def test_a_check_is_sent_three_times_in_the_same_words(wire: Wire) -> None:
    wire.mute.add(A)
    wire.check(A)
    wire.run(10.0)
    first = wire.asked(A)[0]
    assert [round(when - first, 3) for when in wire.asked(A)] == [0.0, 0.1, 0.3]
    assert len({message.transaction_id for _, _, message in wire.sent[1:]}) == 1
    assert wire.selections() == []
    assert isinstance(wire.log[-1][1], Settled)
    assert wire.log[-1][0] - first == pytest.approx(5.0)


def test_a_repeated_check_measures_no_round_trip(agent: Agent) -> None:
    wire = Wire(agent, delay=0.3)
    wire.check(A)
    wire.run(3.0)
    assert agent.selected == A
    assert agent.rtt_ms is None
    wire.run(7.0)  # consent checks are transactions of their own
    assert agent.rtt_ms == pytest.approx(600.0)


def test_a_slow_path_of_four_seconds_connects(agent: Agent) -> None:
    wire = Wire(agent, delay=2.0)
    wire.every(0.25, lambda: wire.check(A))
    wire.run(8.0)
    assert agent.selected == A


def test_a_client_that_keeps_asking_is_asked_again(wire: Wire) -> None:
    wire.mute.add(A)
    wire.every(0.1, lambda: wire.check(A))
    wire.run(3.0)
    first = wire.asked(A)[0]
    assert [round(when - first, 1) for when in wire.asked(A)] == [0.0, 0.1, 0.3, 2.0, 2.1, 2.3]
    wire.mute.clear()
    wire.run(2.0)
    assert wire.agent.selected == A


def test_the_answer_to_an_old_check_still_proves(wire: Wire) -> None:
    wire.mute.add(A)
    wire.check(A)
    wire.run(4.5)
    ours = wire.agent.outstanding()
    assert len(list(ours)) == 1
    ask = next(
        bytes(message) for _, _, message in wire.sent if "ICE-CONTROLLED" in message.attributes
    )
    assert wire.agent.receive(answer(ask), A, CLIENT, wire.now) is None
    assert wire.agent.selected == A


# Limits


def test_four_unproven_addresses_are_asked_at_a_time(wire: Wire) -> None:
    paths = [f"p{number}" for number in range(10)]
    wire.mute |= set(paths)
    for path in paths:
        wire.check(path)
    wire.run(0.5)
    assert [len(wire.asked(path)) for path in paths] == [3, 3, 3, 3, 0, 0, 0, 0, 0, 0]
    wire.run(0.5)  # their time is over
    wire.check("p7")
    wire.run(1.0)
    assert len(wire.asked("p7")) == 3


def test_every_check_is_answered_though_it_is_not_asked_back(wire: Wire) -> None:
    for number in range(10):
        wire.mute.add(f"p{number}")
        wire.check(f"p{number}")
    wire.run(0.05)
    answered = [where for _, where, m in wire.sent if m.message_class is oracle.Class.RESPONSE]
    assert len(set(answered)) == 10


def test_sixteen_paths_and_no_more(wire: Wire) -> None:
    connect(wire, A, B)
    for number in range(40):
        wire.mute.add(f"p{number}")
        wire.check(f"p{number}")
        wire.run(0.01)
    wire.run(0.1)
    gone = [event.path for event in wire.events(Forgotten) if isinstance(event, Forgotten)]
    assert len(gone) == 40 + 2 - 16
    assert {A, B, "p0", "p1", "p2", "p3"}.isdisjoint(gone)  # selected, proven, being asked
    assert gone[0] == "p4"
    assert wire.agent.selected == A


def test_the_mux_hears_of_the_end_of_every_check(wire: Wire) -> None:
    connect(wire, A, B)
    for number in range(40):
        if number % 2:
            wire.mute.add(f"p{number}")
        ask = functools.partial(wire.check, f"p{number}", nominate=True)
        wire.at(number * 0.3, ask)
    wire.run(80.0)
    asked = {(e.path, e.transaction_id) for e in wire.events(Asked) if isinstance(e, Asked)}
    settled = {(e.path, e.transaction_id) for e in wire.events(Settled) if isinstance(e, Settled)}
    assert settled <= asked
    assert asked - settled == set(wire.agent.outstanding())


# Ownership


def test_a_forgotten_path_has_to_prove_itself_anew(wire: Wire) -> None:
    connect(wire, A, B)
    wire.agent.forget(A, wire.now)
    wire.run(0.0)
    assert wire.events(Forgotten) == [Forgotten(A)]
    assert wire.selections() == [B]
    wire.check(A, nominate=True)
    wire.run(0.5)
    assert wire.events(Proven) == [Proven(A)]
    assert wire.selections() == [B, A]


def test_the_path_heard_last_follows_a_forgotten_one(wire: Wire) -> None:
    connect(wire, A, B, "c")
    wire.check(B)
    wire.run(0.1)
    wire.agent.forget(A, wire.now)
    assert wire.agent.selected == B


def test_the_only_path_can_be_forgotten(wire: Wire) -> None:
    connect(wire, A)
    wire.agent.forget(A, wire.now)
    wire.agent.forget("never seen", wire.now)
    assert wire.agent.selected is None
    assert wire.agent.rtt_ms is None
    wire.agent.media(B, wire.now)  # unknown: asked, selected when it answers
    wire.run(1.0)
    assert wire.selections() == [B]


def test_a_path_that_is_not_selected_is_forgotten_quietly(wire: Wire) -> None:
    connect(wire, A, B)
    wire.agent.forget(B, wire.now)
    assert wire.agent.selected == A
