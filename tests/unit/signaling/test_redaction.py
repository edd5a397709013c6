import logging

import pytest

from signaling.redaction import Redacted, mask, redact

PUBLIC = "rtc_IWwJ-_iUTKZerg88cJwZO0e0"
SECRET = "abcdefghijklmnopqrst-_"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"GET /calls/{PUBLIC}_{SECRET}/path", f"GET /calls/{PUBLIC}_[hidden]/path"),
        (r"'v=0\r\na=ice-pwd:aB+/9\r\na=mid:0'", r"'v=0\r\na=ice-pwd:[hidden]\r\na=mid:0'"),
        ("(b'Authorization', b'Bearer ek_x.y-z')", "(b'Authorization', b'Bearer [hidden]')"),
        ("token 12345678 refused", "token [hidden] refused"),
        ("nothing here", "nothing here"),
    ],
)
def test_redact(text: str, shown: str) -> None:
    assert redact(text, ("12345678",)) == shown


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
