import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transceiver.dialects.realtime import Realtime


def dialect() -> Realtime:
    return Realtime(lambda kind: f"{kind}_1")


def test_events_are_what_they_are() -> None:
    event = {"type": "response.created", "event_id": "e", "response": {"id": "ü"}}
    (message,) = dialect().said(event)
    assert json.loads(message) == event
    assert dialect().received(message) == ([event], [])
    assert dialect().received('{"no": "type"}') == ([{"no": "type"}], [])


@pytest.mark.parametrize("message", ["{", "[]", b"\xff", '{"x": NaN}'])
def test_what_is_no_event_is_an_error(message: str | bytes) -> None:
    events, (answer,) = dialect().received(message)
    assert events == []
    error = json.loads(answer)
    assert (error["type"], error["event_id"]) == ("error", "event_1")
    assert error["error"]["code"] == "invalid_json"
    assert set(error["error"]) == {"type", "code", "message", "param", "event_id"}


def test_too_large_is_an_error() -> None:
    assert json.loads(dialect().too_large()[0])["error"]["code"] == "message_too_large"
    (undelivered,) = dialect().undelivered()
    assert json.loads(undelivered)["error"]["code"] == "event_too_large"
    assert len(undelivered) < 400


@given(st.text() | st.binary())
def test_takes_anything(message: str | bytes) -> None:
    events, answers = dialect().received(message)
    assert len(events) + len(answers) == 1
