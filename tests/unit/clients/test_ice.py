import itertools

from aioice import stun

from tests.clients.ice import Agent, Credentials

OURS, THEIRS = Credentials("ours", "o" * 22), Credentials("t" * 24, "t" * 22)
SERVER = ("203.0.113.10", 3478)


def make() -> Agent:
    counter = itertools.count(1)
    return Agent(lambda size: next(counter).to_bytes(size, "big"))


def started() -> Agent:
    agent = make()
    agent.start(OURS, THEIRS, SERVER, 0.0)
    return agent


def take(agent: Agent) -> list[stun.Message]:
    messages = [stun.parse_message(data) for data, _ in agent.out]
    assert all(to == SERVER for _, to in agent.out)
    agent.out.clear()
    return messages


def answer(check: stun.Message, pwd: str = THEIRS.pwd) -> bytes:
    response = stun.Message(
        message_method=stun.Method.BINDING,
        message_class=stun.Class.RESPONSE,
        transaction_id=check.transaction_id,
    )
    response.attributes["XOR-MAPPED-ADDRESS"] = ("10.1.0.2", 5000)
    response.add_message_integrity(pwd.encode())
    return bytes(response)


def test_first_check_nominates_and_is_signed() -> None:
    (check,) = take(started())
    assert check.attributes["USERNAME"] == f"{THEIRS.ufrag}:ours"
    assert "USE-CANDIDATE" in check.attributes
    assert "ICE-CONTROLLING" in check.attributes
    assert check.check_message_integrity(THEIRS.pwd.encode())


def test_selects_what_answered() -> None:
    agent = started()
    (check,) = take(agent)
    agent.receive(answer(check), SERVER, 0.004)
    assert agent.selected == SERVER
    assert agent.first_check_sent == 1
    assert agent.rtt_ms is not None
    assert round(agent.rtt_ms, 3) == 4.0


def test_repeats_the_same_transaction_until_answered() -> None:
    agent = started()
    checks = take(agent)
    for now in (0.05, 0.1, 0.2, 0.31, 5.0):
        agent.timer(now)
    checks += take(agent)
    assert len(checks) == 4  # at 0, 0.1, 0.31 and 5.0
    assert len({check.transaction_id for check in checks}) == 1
    agent.receive(answer(checks[0]), SERVER, 5.1)
    assert agent.first_check_sent == 4
    assert agent.rtt_ms is None  # of which transmission?


def test_wrong_answers_select_nothing() -> None:
    agent = started()
    (check,) = take(agent)
    agent.receive(answer(check, pwd="x" * 22), SERVER, 0.1)
    agent.receive(b"\x01\x01nonsense", SERVER, 0.1)
    agent.receive(answer(stun.Message(stun.Method.BINDING, stun.Class.REQUEST)), SERVER, 0.1)
    assert agent.selected is None


def test_consent_goes_on() -> None:
    agent = started()
    agent.receive(answer(take(agent)[0]), SERVER, 0.1)
    agent.timer(2.5)
    assert take(agent) == []
    agent.timer(2.6)
    assert len(take(agent)) == 1


def test_answers_the_servers_check() -> None:
    agent = started()
    take(agent)
    request = stun.Message(stun.Method.BINDING, stun.Class.REQUEST)
    request.attributes["USERNAME"] = f"ours:{THEIRS.ufrag}"
    request.add_message_integrity(OURS.pwd.encode())
    agent.receive(bytes(request), SERVER, 0.1)
    (response,) = take(agent)
    assert response.message_class is stun.Class.RESPONSE
    assert response.transaction_id == request.transaction_id
    assert response.attributes["XOR-MAPPED-ADDRESS"] == SERVER
    assert response.check_message_integrity(OURS.pwd.encode())


def test_ignores_a_check_that_does_not_verify() -> None:
    agent = started()
    take(agent)
    for ufrag, pwd in [("ours", "x" * 22), ("else", OURS.pwd)]:
        request = stun.Message(stun.Method.BINDING, stun.Class.REQUEST)
        request.attributes["USERNAME"] = f"{ufrag}:{THEIRS.ufrag}"
        request.add_message_integrity(pwd.encode())
        agent.receive(bytes(request), SERVER, 0.1)
    assert agent.out == []


def test_restart_checks_with_new_credentials_over_the_old_path() -> None:
    agent = started()
    agent.receive(answer(take(agent)[0]), SERVER, 0.1)
    new = Credentials("N" * 24, "n" * 22)
    agent.start(Credentials("ours2", "p" * 22), new, SERVER, 1.0)
    assert agent.selected == SERVER
    (check,) = take(agent)
    assert check.attributes["USERNAME"] == f"{new.ufrag}:ours2"
    assert check.check_message_integrity(new.pwd.encode())
