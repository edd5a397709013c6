import pytest
from starlette.requests import HTTPConnection

from signaling.access.access import Caller
from signaling.faces.dialect import BETA, REALTIME, dialect_of


@pytest.mark.parametrize(
    ("header", "subprotocols", "beta_key", "dialect"),
    [
        ("", [], False, REALTIME),
        ("assistants=v2", ["realtime"], False, REALTIME),
        ("realtime=v1", [], False, BETA),
        ("assistants=v2, realtime=v1", [], False, BETA),
        ("", ["realtime", "openai-beta.realtime-v1"], False, BETA),
        ("", [], True, BETA),
    ],
)
def test_says_so_by_header_subprotocol_or_key(
    header: str, subprotocols: list[str], beta_key: bool, dialect: str
) -> None:
    scope = {
        "type": "websocket",
        "headers": [(b"openai-beta", header.encode())],
        "subprotocols": subprotocols,
    }
    assert dialect_of(HTTPConnection(scope), Caller(beta=beta_key)) == dialect


def test_a_plain_request_has_no_subprotocols() -> None:
    assert dialect_of(HTTPConnection({"type": "http", "headers": []}), Caller()) == REALTIME
