"""Strangers, replays, and any order of events: nothing changes that was not proven."""

import pytest
from aioice import stun as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.transceiver.ice.wire import (
    CLIENT,
    OURS,
    SECOND,
    THIRD,
    A,
    B,
    Wire,
    answer,
    check,
    connect,
    counter,
)
from transceiver.ice import (
    Agent,
    Credentials,
    Drop,
    Forgotten,
    Proven,
    Selected,
)

# Hostile input


@pytest.mark.parametrize(
    ("datagram", "drop"),
    [
        pytest.param(b"\0\1", Drop.NOT_STUN, id="not_stun"),
        pytest.param(check(pwd="x" * 22), Drop.WRONG_INTEGRITY, id="wrong_integrity"),
        pytest.param(check(username="nobody:g2D0"), Drop.WRONG_USERNAME, id="our_ufrag"),
        pytest.param(check(username=OURS.ufrag + ":g2D"), Drop.WRONG_USERNAME, id="cut_theirs"),
        pytest.param(check(username=OURS.ufrag + ":g2D01"), Drop.WRONG_USERNAME, id="long_theirs"),
        pytest.param(check(username=OURS.ufrag), Drop.WRONG_USERNAME, id="no_colon"),
        pytest.param(answer(check()), Drop.UNKNOWN_TRANSACTION, id="response_to_nothing"),
        pytest.param(answer(check(), error=401), Drop.UNKNOWN_TRANSACTION, id="error_to_nothing"),
    ],
)
def test_a_stranger_changes_nothing_and_is_not_answered(
    wire: Wire, datagram: bytes, drop: Drop
) -> None:
    connect(wire, A)
    for path in (A, B):
        assert wire.agent.receive(datagram, path, CLIENT, wire.now) is drop
    assert (wire.agent.datagrams, wire.agent.events) == ([], [])
    assert wire.agent.selected == A


def unsigned(username: str | None) -> bytes:
    message = oracle.Message(oracle.Method.BINDING, oracle.Class.REQUEST)
    if username is not None:
        message.attributes["USERNAME"] = username
    message.add_fingerprint()
    return bytes(message)


def test_unsigned_and_nameless_checks_are_dropped(agent: Agent) -> None:
    whole = f"{OURS.ufrag}:{OURS.remote_ufrag}"
    assert agent.receive(unsigned(whole), A, CLIENT, 1.0) is Drop.NO_INTEGRITY
    assert agent.receive(unsigned(None), A, CLIENT, 1.0) is Drop.NO_USERNAME
    assert agent.datagrams == []


def test_error_responses_and_wrong_answers_prove_nothing(agent: Agent) -> None:
    agent.receive(check(nominate=True), A, CLIENT, 1.0)
    ours = agent.datagrams[1][0]
    agent.datagrams.clear()
    agent.events.clear()
    unsigned_answer = oracle.Message(
        oracle.Method.BINDING, oracle.Class.RESPONSE, oracle.parse_message(ours).transaction_id
    )
    for datagram, path, drop in (
        (answer(ours, error=401), A, Drop.ERROR_RESPONSE),
        (answer(ours, error=487), A, Drop.ERROR_RESPONSE),
        (answer(ours, "x" * 24), A, Drop.WRONG_INTEGRITY),
        (answer(ours, OURS.pwd), A, Drop.WRONG_INTEGRITY),
        (bytes(unsigned_answer), A, Drop.NO_INTEGRITY),
        (answer(ours), B, Drop.UNKNOWN_TRANSACTION),
    ):
        assert agent.receive(datagram, path, CLIENT, 1.01) is drop
    assert (agent.datagrams, agent.events, agent.selected) == ([], [], None)
    assert agent.receive(answer(ours), A, CLIENT, 1.02) is None  # the true one still counts
    assert agent.selected == A
    assert agent.receive(answer(ours), A, CLIENT, 1.03) is Drop.UNKNOWN_TRANSACTION


def test_a_replayed_nomination_from_elsewhere_moves_nothing(wire: Wire) -> None:
    connect(wire, A)
    captured = check(nominate=True)
    wire.mute.add(B)
    wire.every(2.5, lambda: wire.check(A, nominate=True))

    def replay() -> None:
        wire.agent.receive(captured, B, ("192.0.2.66", 6666), wire.now)

    wire.every(0.1, replay)
    wire.run(20.0)
    assert wire.selections() == []
    assert len(wire.asked(B)) <= 3 * 10  # three in two seconds


def test_the_wrong_role_gets_a_signed_487_and_no_path(agent: Agent) -> None:
    datagram = check(role="ICE-CONTROLLED", nominate=True)
    assert agent.receive(datagram, A, CLIENT, 1.0) is Drop.ROLE_CONFLICT
    ((reply, to),) = agent.datagrams
    assert to == A
    assert oracle.parse_message(reply).error_code == 487
    assert oracle.parse_message(reply).check_message_integrity(OURS.pwd.encode())
    assert agent.events == []


def test_the_wrong_role_is_not_told_to_strangers(agent: Agent) -> None:
    datagram = check(role="ICE-CONTROLLED", pwd="x" * 22)
    assert agent.receive(datagram, A, CLIENT, 1.0) is Drop.WRONG_INTEGRITY
    assert agent.datagrams == []


# Anything

paths = st.sampled_from(["a", "b", "c", "d", "e"])
steps = st.one_of(
    st.tuples(st.just("bytes"), paths, st.binary(max_size=80)),
    st.tuples(st.just("check"), paths, st.sampled_from([OURS, SECOND, THIRD]), st.booleans()),
    st.tuples(st.just("answer"), paths, st.integers(0, 5)),
    st.tuples(st.just("media"), paths, st.booleans()),
    st.tuples(st.just("forget"), paths),
    st.tuples(st.just("restart"), st.sampled_from([SECOND, THIRD])),
    st.tuples(st.just("wait"), st.floats(0, 12)),
)


def perform(wire: Wire, step: tuple[object, ...]) -> None:
    agent = wire.agent
    match step:
        case ("bytes", path, bytes(datagram)):
            agent.receive(datagram, path, CLIENT, wire.now)
        case ("check", path, Credentials() as credentials, bool(nominate)):
            agent.receive(check(credentials, nominate=nominate), path, CLIENT, wire.now)
        case ("answer", path, int(back)):
            ours = [m for _, where, m in wire.sent if where == path and m.message_class == 0]
            if len(ours) > back:
                theirs = ours[-1 - back].attributes["USERNAME"].partition(":")[0]
                pwd = next(c.remote_pwd for c in (OURS, SECOND, THIRD) if c.remote_ufrag == theirs)
                agent.receive(answer(bytes(ours[-1 - back]), pwd), path, CLIENT, wire.now)
        case ("media", path, bool(newest)):
            agent.media(path, wire.now, newest)
        case ("forget", path):
            agent.forget(path, wire.now)
        case ("restart", Credentials() as credentials) if credentials.ufrag not in agent.creds:
            agent.restart(credentials)
        case ("wait", float(seconds)):
            wire.run(seconds)


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, max_size=40))
def test_in_any_order_of_events_the_rules_hold(plan: list[tuple[object, ...]]) -> None:
    wire = Wire(Agent(OURS, counter()))
    wire.mute |= {"a", "b", "c", "d", "e"}  # answers come only from the plan
    proven: set[object] = set()
    for step in plan:
        perform(wire, step)
        wire.run(0.0)
        for _, event in wire.log:
            if isinstance(event, Proven):
                proven.add(event.path)
            elif isinstance(event, Forgotten):
                proven.discard(event.path)
            elif isinstance(event, Selected):
                assert event.path in proven
        wire.log.clear()
        assert 1 <= len(wire.agent.creds) <= 2
        assert wire.agent.selected is None or wire.agent.selected in proven
        assert wire.agent.next_deadline() > wire.now


@given(st.lists(st.binary(max_size=120), max_size=20))
def test_any_bytes_change_nothing(datagrams: list[bytes]) -> None:
    agent = Agent(OURS, counter())
    for datagram in datagrams:
        assert agent.receive(datagram, A, CLIENT, 1.0) is not None
    assert (agent.datagrams, agent.events, agent.selected) == ([], [], None)
