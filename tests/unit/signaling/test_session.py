import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signaling.refusal import Refused
from signaling.session import MAX_DEPTH, MAX_SESSION, read_session


def test_is_handed_on_as_it_is() -> None:
    assert read_session(b'{"model": "m", "x": {"y": [null]}}', None) == {
        "model": "m",
        "x": {"y": [None]},
    }
    assert read_session(None, None) == {}


def test_the_model_of_the_query_is_for_a_session_without_one() -> None:
    assert read_session(None, "q") == {"model": "q"}
    assert read_session(b'{"voice": "ash"}', "q") == {"model": "q", "voice": "ash"}
    assert read_session(b'{"model": "m"}', "q") == {"model": "m"}


@pytest.mark.parametrize(
    "text",
    [
        b'{"x": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
        *(b"", b"{", b"[]", b"null", b"\xff", b"[" * 60_000, b'{"x": NaN}', b'{"x": "\\ud800"}'),
        b'{"x": -1e999}',
        b'{"x": -1' + b"0" * 309 + b"}",
        b'{"x": "' + b"y" * MAX_SESSION + b'"}',
    ],
)
def test_what_is_no_session_is_refused(text: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read_session(text, "m")
    refused = caught.value
    assert (refused.code, refused.status, refused.param) == ("bad_session", 400, "session")


@given(st.binary())
def test_takes_anything(text: bytes) -> None:
    with contextlib.suppress(Refused):
        assert isinstance(read_session(text, None), dict)
