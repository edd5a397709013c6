import json
from typing import Any

import pytest

from transceiver.dialects.reading import MAX_DEPTH, halves, read

BARE = '{"type": "session.update", "session": {"x": %s}}'


@pytest.mark.parametrize(
    "message",
    [
        *("{", "", b"\xff", "[" * 100_000, "[]", "1", "null"),
        *(
            BARE % "NaN",
            BARE % "-Infinity",
            BARE % "1e999",
            BARE % ("9" * 400),
            BARE % ("9" * 5000),
        ),
    ],
)
def test_what_is_no_object_is_none(message: str | bytes) -> None:
    assert read(message) is None


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"x": value}])
def test_depth_is_bounded(wrap: Any) -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH - 1):
        value = wrap(value)
    assert read(json.dumps({"x": value})) == {"x": value}
    assert read(json.dumps({"x": wrap(value)})) is None


def test_a_piece_of_text_is_said_in_two() -> None:
    event = {"type": "response.output_text.delta", "event_id": "e", "delta": "hello"}
    both = halves(event)
    assert both is not None
    assert [half["delta"] for half in both] == ["he", "llo"]
    assert len({half["event_id"] for half in both} | {"e"}) == 3
    assert all(half["type"] == event["type"] for half in both)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "session.updated", "session": {}},
        {"type": "response.output_text.delta", "delta": "x"},
        {"type": "response.output_text.done", "delta": "hello"},
        {"type": "x.delta", "delta": 5},
    ],
)
def test_what_has_no_halves(event: dict[str, Any]) -> None:
    assert halves(event) is None
