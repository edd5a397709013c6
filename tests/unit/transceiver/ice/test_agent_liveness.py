"""Consent, away, back and dead, with a client on the wire."""

import itertools

from tests.unit.transceiver.ice.wire import (
    CLIENT,
    OURS,
    A,
    B,
    Wire,
    check,
    connect,
    counter,
)
from transceiver.ice import (
    Agent,
    Away,
    Back,
    Dead,
    Drop,
    Forgotten,
    Proven,
)


def test_consent_is_asked_every_four_to_six_seconds(wire: Wire) -> None:
    connect(wire, A)
    wire.run(120.0)
    asked = wire.asked(A)
    gaps = [after - before for before, after in itertools.pairwise(asked)]
    assert len(asked) >= 19
    assert all(4.0 <= gap <= 6.0 for gap in gaps)
    assert len({round(gap, 3) for gap in gaps}) > 5
    assert wire.events(Dead) == wire.events(Away) == wire.events(Proven) == []


def test_away_back_and_dead_in_time(agent: Agent, wire: Wire) -> None:
    connect(wire, A)
    heard = 1000.0 + 0.06
    wire.dead.add(A)
    wire.run(12.0)
    assert [(round(when - heard, 3), event) for when, event in wire.log if event == Away()] == [
        (10.0, Away())
    ]
    wire.dead.clear()
    wire.log.clear()
    wire.check(A)
    wire.run(0.1)
    assert wire.events(Back) == [Back()]
    wire.dead.add(A)
    wire.log.clear()
    last = wire.now - 0.1 + 0.02
    wire.run(40.0)
    lives = [(round(w - last, 3), e) for w, e in wire.log if isinstance(e, Away | Back | Dead)]
    assert [event for _, event in lives] == [Away(), Dead()]
    assert 10.0 <= lives[0][0] <= 10.1
    assert 30.0 <= lives[1][0] <= 30.1
    assert agent.next_deadline() == float("inf")


def test_media_brings_a_call_back(wire: Wire) -> None:
    connect(wire, A)
    wire.dead.add(A)
    wire.run(12.0)
    wire.dead.clear()
    wire.media(A)
    wire.run(0.1)
    assert wire.events(Back) == [Back()]


def test_a_late_timer_says_dead_and_nothing_else(agent: Agent, wire: Wire) -> None:
    connect(wire, A)
    agent.timer(wire.now + 100.0)
    assert agent.events == [Dead()]


def test_a_dead_agent_does_nothing(agent: Agent, wire: Wire) -> None:
    connect(wire, A)
    agent.timer(wire.now + 100.0)
    agent.events.clear()
    now = wire.now + 101.0
    assert agent.receive(check(), A, CLIENT, now) is Drop.ENDED
    agent.media(A, now)
    agent.media(B, now)
    agent.hint(B, now)
    agent.timer(now)
    assert (agent.datagrams, agent.events) == ([], [])


def test_a_client_that_only_answers_lives(wire: Wire) -> None:
    connect(wire, A)
    wire.run(100.0)
    assert wire.events(Dead) == []


def test_a_client_that_only_asks_lives(wire: Wire) -> None:
    connect(wire, A)
    wire.mute.add(A)
    wire.every(2.5, lambda: wire.check(A))
    wire.run(100.0)
    assert wire.events(Dead) == wire.events(Away) == []


def test_a_client_that_only_sends_media_lives(wire: Wire) -> None:
    connect(wire, A)
    wire.mute.add(A)
    wire.every(0.02, lambda: wire.media(A))
    wire.run(60.0)
    assert wire.events(Dead) == wire.events(Away) == []


def test_away_and_dead_are_configured() -> None:
    agent = Agent(OURS, counter(), away_after_s=2.0, consent_s=4.0)
    wire = Wire(agent)
    connect(wire, A)
    wire.dead.add(A)
    wire.run(6.0)
    assert wire.events(Away) == [Away()]
    assert wire.events(Dead) == [Dead()]


def test_silence_before_the_first_selection_is_no_ones_business(wire: Wire) -> None:
    wire.mute.add(A)
    wire.check(A)
    wire.run(50.0)
    assert wire.events(Away) == wire.events(Dead) == []


def test_a_path_unheard_for_a_minute_is_forgotten(wire: Wire) -> None:
    connect(wire, A, B)
    wire.every(2.0, lambda: wire.check(A))
    wire.run(58.0)
    assert wire.events(Forgotten) == []
    wire.run(3.0)
    assert wire.events(Forgotten) == [Forgotten(B)]
