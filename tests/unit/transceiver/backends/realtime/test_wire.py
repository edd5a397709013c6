import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transceiver.backends.realtime.wire import append, read, text

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.just("\ud800"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), values))
def test_an_event_is_the_same_value_on_the_other_side(fields: dict[str, object]) -> None:
    event = {**fields, "type": "any"}
    assert read(text(event)) == event
    assert read(text(event).encode()) == event
    assert json.dumps(read(text(event))) == json.dumps(event)


DEEP = '{"type": "x", "n": ' + "[" * 40 + "]" * 40 + "}"


NO_EVENTS = (
    *("", "{", "[]", "5", '"x"', "{}", b"\xff{}", DEEP),
    *('{"type": 5}', '{"type": "x", "n": NaN}', '{"type": "x", "n": 1e999}'),
)


@pytest.mark.parametrize("message", NO_EVENTS)
def test_what_is_no_event(message: str | bytes) -> None:
    assert read(message) is None


def test_sound() -> None:
    assert json.loads(append(b"\x01\x02")) == {"type": "input_audio_buffer.append", "audio": "AQI="}
