from transceiver.backends.realtime.configuration import (
    MAX_HELD,
    MAX_WANTED,
    Configuration,
    stripped,
)

PCM = {"type": "audio/pcm", "rate": 24000}
SOUND = {"input": {"format": PCM}, "output": {"format": PCM}}


def asked(configuration: Configuration) -> dict[str, object]:
    """What a new server is asked for."""
    configuration.restart()
    session: dict[str, object] = configuration.created({}, "ours")["session"]
    return session


def test_asks_for_the_calls_session_with_our_sound() -> None:
    wanted = {"id": "x", "expires_at": 5, "object": "y", "tools": [1], "audio": {"z": 1}}
    session = asked(Configuration(wanted, None))
    assert session == {"type": "realtime", "tools": [1], "audio": {"z": 1, **SOUND}}


def test_the_operators_model_goes_before_the_clients() -> None:
    assert asked(Configuration({"model": "small"}, "big"))["model"] == "big"
    assert asked(Configuration({"model": "small"}, None))["model"] == "small"
    assert "model" not in asked(Configuration({}, None))


def test_the_clients_model_does_not_pass_where_the_operator_has_one() -> None:
    later = {"model": "small", "voice": "ash"}
    assert Configuration({}, "big").passed(later) == {"voice": "ash"}
    assert Configuration({}, None).passed(later) == later


def test_what_the_client_changed_is_asked_again() -> None:
    configuration = Configuration({"instructions": "a", "model": "alias"}, None)
    asked(configuration)
    configuration.settled({})
    configuration.asked({"instructions": "b", "audio": {"input": {"turn_detection": None}}}, None)
    session = asked(configuration)
    assert session["instructions"] == "b"
    assert session["audio"] == {**SOUND, "input": {"format": PCM, "turn_detection": None}}


def test_what_the_server_shows_is_asked_again() -> None:
    configuration = Configuration({"instructions": "a", "model": "alias"}, None)
    asked(configuration)
    configuration.settled({})
    configuration.asked({"instructions": "b"}, None)
    configuration.updated({"instructions": "B", "model": "alias-2026", "voice": "not asked"})
    session = asked(configuration)
    assert (session["instructions"], session["model"]) == ("B", "alias")
    assert "voice" not in session


def test_what_was_refused_is_not_asked_again() -> None:
    configuration = Configuration({"instructions": "a"}, None)
    asked(configuration)
    configuration.settled({})
    configuration.asked({"instructions": "b"}, "good")
    configuration.asked({"tools": "nonsense"}, "bad")
    configuration.updated({"instructions": "b"})
    configuration.refused("something else")
    configuration.refused("bad")
    session = asked(configuration)
    assert "tools" not in session


def test_an_update_that_a_lost_server_did_not_answer_is_answered_by_the_next() -> None:
    configuration = Configuration({}, None)
    asked(configuration)
    assert [e["type"] for e in configuration.settled({})] == ["session.created"]
    configuration.asked({"instructions": "b"}, None)
    asked(configuration)
    shown = {"instructions": "b"}
    assert configuration.settled(shown) == [{"type": "session.updated", "session": shown}]
    asked(configuration)
    assert configuration.settled(shown) == []


def test_events_before_the_session_wait_for_it_within_a_bound() -> None:
    configuration = Configuration({}, None)
    configuration.hold({"type": "error"})
    configuration.created({"id": "own"}, "ours")
    for number in range(MAX_HELD + 5):
        configuration.hold({"type": "x", "n": number})
    told = configuration.settled(None)
    assert told[0] == {"type": "session.created", "session": {"id": "own"}}
    assert [event["n"] for event in told[1:]] == list(range(MAX_HELD))


def test_only_errors_about_what_we_ask_answer_it() -> None:
    configuration = Configuration({}, None)
    assert not configuration.answers(None)
    assert configuration.settled({}) == []
    configuration.created({}, "ours")
    assert configuration.answers("ours")
    assert configuration.answers(None)  # of a server that does not say
    assert not configuration.answers("the client's")


def test_interrupts_unless_the_session_says_no() -> None:
    def interrupts(detection: object) -> bool:
        configuration = Configuration({}, None)
        configuration.updated({"audio": {"input": {"turn_detection": detection}}})
        return configuration.interrupts

    assert [interrupts(d) for d in (None, {}, {"interrupt_response": None}, 5)] == [True] * 4
    assert interrupts({"interrupt_response": True})
    assert not interrupts({"interrupt_response": False})


def test_stripped_leaves_what_it_was_given_alone() -> None:
    session = {"audio": {"input": {"format": PCM, "x": 1}, "output": None, "y": 1}}
    assert stripped(session) == {"audio": {"input": {"x": 1}, "output": None, "y": 1}}
    assert session["audio"]["input"] == {"format": PCM, "x": 1}


def test_updates_that_add_up_are_not_asked_again_for_ever() -> None:
    configuration = Configuration({}, None)
    for n in range(9):
        configuration.asked({f"key{n}": "x" * (MAX_WANTED // 4)}, f"mine{n}")
    kept = [key for key in asked(configuration) if key.startswith("key")]
    assert kept == ["key0", "key1", "key2"]
