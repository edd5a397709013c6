import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire.call_id import CallId, CallIdError, parse

TOKEN = "IWwJ+/iUTKZerg88cJwZO0e0"
SECRET = "abcdefghijklmnopqrst-_"


def test_render_uses_url_letters() -> None:
    assert CallId(TOKEN, SECRET).render() == f"rtc_IWwJ-_iUTKZerg88cJwZO0e0_{SECRET}"


@given(
    st.from_regex(r"[A-Za-z0-9+/]{24}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9_-]{22}", fullmatch=True),
)
def test_parse_is_the_inverse_of_render(token: str, secret: str) -> None:
    assert parse(CallId(token, secret).render()) == CallId(token, secret)


@pytest.mark.parametrize(
    "text",
    ["", "rtc_", f"rtc_{TOKEN}_{SECRET}", f"rtc_{'a' * 24}_{'b' * 21}", f"rtc_{'a' * 47}\n"],
)
def test_parse_refuses_and_shows_nothing(text: str) -> None:
    with pytest.raises(CallIdError) as caught:
        parse(text)
    assert SECRET not in str(caught.value)


def test_secret_is_not_shown() -> None:
    call_id = CallId(TOKEN, SECRET)
    assert SECRET not in repr(call_id)
    assert SECRET not in call_id.public
