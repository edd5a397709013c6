import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transceiver.dialects.realtime import MAX_DEPTH, MAX_SESSION, Realtime


def dialect() -> Realtime:
    numbers = itertools.count()
    return Realtime(lambda kind: f"{kind}_{next(numbers)}")


def say(realtime: Realtime, event: Any) -> dict[str, Any]:
    (answer,) = realtime.received(json.dumps(event))
    parsed: dict[str, Any] = json.loads(answer)
    return parsed


def test_begins_with_the_session() -> None:
    (first,) = dialect().opened()
    event = json.loads(first)
    assert event["type"] == "session.created"
    assert event["session"]["type"] == "realtime"
    assert event["session"]["id"].startswith("sess_")
    assert event["event_id"].startswith("event_")


def test_an_update_merges_and_keeps_what_it_does_not_know() -> None:
    realtime = dialect()
    event = say(
        realtime,
        {
            "type": "session.update",
            "session": {
                "audio": {"input": {"turn_detection": {"type": "semantic_vad"}}},
                "tracing": "auto",
                "id": "mine",
            },
        },
    )
    session = event["session"]
    assert event["type"] == "session.updated"
    assert session["audio"]["input"]["turn_detection"] == {"type": "semantic_vad"}
    assert session["audio"]["input"]["format"]["rate"] == 24000
    assert session["tracing"] == "auto"
    assert session["id"].startswith("sess_")
    assert say(realtime, {"type": "session.update", "session": {}})["session"] == session


@pytest.mark.parametrize(
    ("event", "code", "of"),
    [
        pytest.param({"type": "x.y", "event_id": "e1"}, "unknown_event", "e1", id="unknown"),
        pytest.param({"event_id": "e1"}, "unknown_event", "e1", id="no_type"),
        pytest.param({"type": [], "event_id": 5}, "unknown_event", None, id="odd_type"),
        pytest.param(
            {"type": "session.update", "event_id": "e"}, "invalid_session", "e", id="bare"
        ),
        pytest.param([], "invalid_json", None, id="list"),
    ],
)
def test_errors_name_the_event(event: Any, code: str, of: str | None) -> None:
    answer = say(dialect(), event)
    assert answer["type"] == "error"
    assert answer["error"]["code"] == code
    assert answer["error"]["event_id"] == of


BARE = '{"type": "session.update", "session": {"x": %s}}'


@pytest.mark.parametrize(
    "message",
    ["{", "", b"\xff", "[" * 100_000, BARE % "NaN", BARE % "-Infinity", BARE % ("9" * 5000)],
)
def test_what_is_no_json_is_an_error(message: str | bytes) -> None:
    (answer,) = dialect().received(message)
    assert json.loads(answer)["error"]["code"] == "invalid_json"


@pytest.mark.parametrize(
    ("depth", "kind"), [(MAX_DEPTH, "session.updated"), (MAX_DEPTH + 1, "error")]
)
def test_depth_is_bounded(depth: int, kind: str) -> None:
    value: Any = 1
    for _ in range(depth - 2):  # the event and its session are two levels
        value = [value]
    event = {"type": "session.update", "session": {"x": value}}
    assert say(dialect(), event)["type"] == kind


def test_updates_do_not_add_up_for_ever() -> None:
    realtime = dialect()
    kinds = [
        say(realtime, {"type": "session.update", "session": {f"x{number}": "y" * 10_000}})["type"]
        for number in range(20)
    ]
    assert kinds[:10] == ["session.updated"] * 10
    refused = say(realtime, {"type": "session.update", "session": {"z": "y" * 10_000}})
    assert refused["error"]["code"] == "session_too_large"
    small = say(realtime, {"type": "session.update", "session": {"instructions": "hi"}})
    assert small["session"]["instructions"] == "hi"
    assert len(json.dumps(small)) <= MAX_SESSION


def test_too_large_is_an_error() -> None:
    assert json.loads(dialect().too_large()[0])["error"]["code"] == "message_too_large"
    (undelivered,) = dialect().undelivered()
    assert json.loads(undelivered)["error"]["code"] == "event_too_large"
    assert len(undelivered) < 400


@given(st.text() | st.binary())
def test_answers_anything(message: str | bytes) -> None:
    assert len(dialect().received(message)) == 1
