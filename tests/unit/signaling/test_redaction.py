import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signaling.redaction import Redacted, mask, redact

PUBLIC = "rtc_IWwJ-_iUTKZerg88cJwZO0e0"
SECRET = "abcdefghijklmnopqrst-_"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"GET /calls/{PUBLIC}_{SECRET}/path", f"GET /calls/{PUBLIC}_[hidden]/path"),
        (r"'v=0\r\na=ice-pwd:aB+/9\r\na=mid:0'", r"'v=0\r\na=ice-pwd:[hidden]\r\na=mid:0'"),
        ("(b'Authorization', b'Bearer ek_x.y-z')", "(b'Authorization', b'Bearer [hidden]')"),
        ("{'authorization': 'Basic dTpw'}", "{'authorization': 'Basic [hidden]'}"),
        ("Authorization: sk-fl-x\r\nHost: y", "Authorization: [hidden]\r\nHost: y"),
        (
            "(b'sec-websocket-protocol', b'realtime, openai-insecure-api-key.sk-x, other')",
            "(b'sec-websocket-protocol', b'[hidden]')",
        ),
        ("> Sec-WebSocket-Protocol: realtime, x.y", "> Sec-WebSocket-Protocol: [hidden]"),
        (
            "'subprotocols': ['realtime', 'openai-insecure-api-key.sk-fl-x']",
            "'subprotocols': ['realtime', 'openai-insecure-api-key.[hidden]']",
        ),
        ("key sk-fl-Ab_9-z.", "key sk-[hidden]"),
        ("'ek_Ab9-_' is old", "'ek_[hidden]' is old"),
        ("a week_day, task-list", "a week_day, task-list"),
        (
            "GET /v1/realtime?call_id=rtc_x&model=y HTTP",
            "GET /v1/realtime?call_id=[hidden]&model=[hidden] HTTP",
        ),
        ("'query_string': b'key=1', 'x'", "'query_string': b'[hidden]', 'x'"),
        ("redis://user:pass@10.0.0.1:6379/0", "redis://[hidden]@10.0.0.1:6379/0"),
        ("http://10.0.0.1:80/x@y", "http://10.0.0.1:80/x@y"),
        (
            "IceCredentials(ufrag='abcd', pwd='x/y+z')",
            "IceCredentials(ufrag='abcd', pwd='[hidden]')",
        ),
        ('{"password": "a b"}', '{"password": "[hidden] b"}'),
        (
            r"""{"type":"session.update","session":{"instructions":"say \"hi\" now","x":1}}""",
            '{"type":"session.update","session":{"instructions":"[hidden]","x":1}}',
        ),
        ("{'instructions': 'cut off", "{'instructions': '[hidden]"),
        ("""< TEXT '{"type": ...be brief"}}' [90 bytes]""", "< TEXT [hidden]"),
        ("token 12345678 refused", "token [hidden] refused"),
        ("nothing here", "nothing here"),
    ],
)
def test_redact(text: str, shown: str) -> None:
    assert redact(text, ("12345678",)) == shown


@given(
    st.text(alphabet="abAZ09_-", min_size=22, max_size=22),
    st.text(alphabet="abAZ09_-", min_size=32, max_size=32),
)
def test_no_secret_gets_through_in_any_company(half: str, key: str) -> None:
    for secret, text in (
        (half, f"{PUBLIC}_{half}"),
        (key, f"ek_{key}"),
        (key, f"sk-fl-{key}"),
        (key, f"a=ice-pwd:{key.replace('_', '+').replace('-', '/')}"),
    ):
        hidden = secret.replace("_", "+").replace("-", "/") if "pwd" in text else secret
        for shown in (text, repr(text), repr(text.encode()), f"x={text};", f"[{text}, 1]"):
            assert hidden not in redact(shown)


def test_long_lines_take_no_long_time() -> None:
    for text in ("a.", "?", "a=", "authorization", "ek", "://", "'", "instructions:"):
        redact(text * (200_000 // len(text)))


def test_formatter_redacts_tracebacks() -> None:
    try:
        raise ValueError(f"{PUBLIC}_{SECRET}")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, "", 0, "failed", (), (type(error), error, error.__traceback__)
        )
    text = Redacted(("",)).format(record)
    assert "Traceback" in text
    assert PUBLIC in text
    assert SECRET not in text


@pytest.mark.parametrize(
    ("host", "shown"),
    [("198.51.100.77", "198.51.100.0/24"), ("2001:db8:1:2::3", "2001:db8:1::/48"), ("x", "-")],
)
def test_mask(host: str, shown: str) -> None:
    assert mask(host) == shown
