"""ICE restarts."""

import dataclasses

import pytest
from aioice import stun as oracle

from tests.unit.transceiver.ice.wire import (
    CLIENT,
    OURS,
    SECOND,
    THIRD,
    A,
    B,
    Wire,
    check,
    connect,
)
from transceiver.ice import (
    Agent,
    Asked,
    Drop,
    Proven,
    Retired,
    Settled,
)


def test_a_restart_on_the_same_path_keeps_it(wire: Wire) -> None:
    connect(wire, A)
    wire.agent.restart(SECOND)
    assert list(wire.agent.creds) == [OURS.ufrag, SECOND.ufrag]
    wire.credentials.append(SECOND)
    wire.check(A)  # the old ones still count
    wire.run(0.2)
    assert wire.drops == []
    wire.check(A, nominate=True, credentials=SECOND)
    wire.run(0.2)
    assert list(wire.agent.creds) == [SECOND.ufrag]
    assert wire.events(Retired) == [Retired(OURS.ufrag)]
    assert wire.events(Proven) == [Proven(A)]
    assert wire.selections() == []
    wire.check(A)
    wire.run(0.2)
    assert wire.drops == [Drop.WRONG_USERNAME]


def test_a_restart_to_another_path_moves_when_it_answers(wire: Wire) -> None:
    connect(wire, A)
    wire.every(0.02, lambda: wire.media(A))
    wire.agent.restart(SECOND)
    wire.credentials.append(SECOND)
    wire.mute.add(B)
    wire.check(B, nominate=True, credentials=SECOND)
    wire.run(2.2)
    assert wire.agent.selected == A
    assert len(wire.agent.creds) == 2
    wire.mute.clear()
    wire.check(B, nominate=True, credentials=SECOND)
    wire.run(0.2)
    assert wire.selections() == [B]
    assert wire.events(Retired) == [Retired(OURS.ufrag)]


def test_a_restart_after_the_old_path_died_moves_without_nomination(wire: Wire) -> None:
    connect(wire, A)
    wire.dead.add(A)
    wire.run(3.0)
    wire.agent.restart(SECOND)
    wire.credentials = [SECOND]
    wire.check(B, credentials=SECOND)
    wire.run(0.2)
    assert wire.selections() == [B]


def test_a_restarted_living_path_waits_for_nomination(wire: Wire) -> None:
    connect(wire, A)
    wire.every(0.02, lambda: wire.media(A))
    wire.run(0.1)
    wire.agent.restart(SECOND)
    wire.credentials.append(SECOND)
    wire.check(B, credentials=SECOND)
    wire.run(1.0)
    assert wire.selections() == []
    wire.check(B, nominate=True, credentials=SECOND)
    wire.run(0.2)
    assert wire.selections() == [B]


def test_two_restarts_one_after_the_other(wire: Wire) -> None:
    connect(wire, A)
    for credentials in (SECOND, THIRD):
        wire.agent.restart(credentials)
        wire.credentials.append(credentials)
        wire.check(A, nominate=True, credentials=credentials)
        wire.run(7.0)
        assert list(wire.agent.creds) == [credentials.ufrag]
        assert wire.agent.selected == A
    assert wire.events(Retired) == [Retired(OURS.ufrag), Retired(SECOND.ufrag)]
    consents = [m for _, _, m in wire.sent if "ICE-CONTROLLED" in m.attributes]
    assert consents[-1].attributes["USERNAME"] == f"{THIRD.remote_ufrag}:{THIRD.ufrag}"
    assert wire.agent.moves == 0


def test_a_second_restart_replaces_one_that_never_connected(wire: Wire) -> None:
    connect(wire, A)
    wire.agent.restart(SECOND)
    wire.mute.add(B)
    wire.check(B, credentials=SECOND)
    wire.run(0.1)
    wire.agent.restart(THIRD)
    wire.run(0.0)
    assert list(wire.agent.creds) == [OURS.ufrag, THIRD.ufrag]
    assert wire.events(Retired) == [Retired(SECOND.ufrag)]
    assert len(wire.events(Settled)) == len(wire.events(Asked))
    wire.credentials.append(THIRD)
    wire.check(A, nominate=True, credentials=THIRD)
    wire.run(0.2)
    assert list(wire.agent.creds) == [THIRD.ufrag]


def test_a_restart_before_anything_connected(wire: Wire) -> None:
    wire.agent.restart(SECOND)
    wire.credentials = [SECOND]
    wire.check(A, nominate=True, credentials=SECOND)
    wire.run(0.2)
    assert wire.agent.selected == A
    assert list(wire.agent.creds) == [SECOND.ufrag]


def test_a_restart_needs_a_new_ufrag(agent: Agent) -> None:
    with pytest.raises(ValueError, match="in use"):
        agent.restart(dataclasses.replace(SECOND, ufrag=OURS.ufrag))


def test_checks_of_old_and_new_credentials_are_answered_under_their_own(agent: Agent) -> None:
    agent.restart(SECOND)
    for credentials in (OURS, SECOND):
        agent.datagrams.clear()
        assert agent.receive(check(credentials), A, CLIENT, 1.0) is None
        success = oracle.parse_message(agent.datagrams[0][0])
        assert success.check_message_integrity(credentials.pwd.encode())


def test_credentials_of_the_client_are_known_while_they_are_valid(wire: Wire) -> None:
    connect(wire, A)
    agent = wire.agent
    assert agent.answering(OURS.remote_ufrag, OURS.remote_pwd) is OURS
    assert agent.answering(OURS.remote_ufrag, "another" * 4) is None
    assert agent.answering(SECOND.remote_ufrag, SECOND.remote_pwd) is None
    agent.restart(SECOND)
    assert agent.answering(OURS.remote_ufrag, OURS.remote_pwd) is OURS
    assert agent.answering(SECOND.remote_ufrag, SECOND.remote_pwd) is SECOND
    wire.credentials.append(SECOND)
    wire.check(A, nominate=True, credentials=SECOND)
    wire.run(0.2)
    assert agent.answering(OURS.remote_ufrag, OURS.remote_pwd) is None


def test_a_nomination_that_was_followed_counts_no_second_time(wire: Wire) -> None:
    connect(wire, A)
    wire.mute.add(B)
    wire.check(B, nominate=True)
    wire.run(2.5)
    wire.mute.clear()
    wire.check(B)
    wire.every(0.02, lambda: wire.media(A), first=1.0)
    wire.run(2.0)
    assert wire.selections() == [B, A]
    wire.agent.restart(SECOND)
    wire.credentials.append(SECOND)
    wire.check(B, credentials=SECOND)
    wire.run(0.5)
    assert wire.selections() == [B, A]
