"""The session that a client asks for with its offer: a Realtime session object, or parts of one.

Pure. It is handed on as it is; what it means is for the transceiver's backend.
"""

import json
from typing import Any

from signaling.refusal import Code, Refused

MAX_SESSION = 64 * 1024  # bytes

Session = dict[str, Any]


def read_session(text: bytes | None, model: str | None) -> Session:
    """The JSON `text` of a session, with `model` if it names none. Raises `Refused` with
    `bad_session`."""
    session = {} if text is None else _parse(text)
    return session if model is None else {"model": model, **session}


def _parse(text: bytes) -> Session:
    if len(text) > MAX_SESSION:
        raise _bad(f"has more than {MAX_SESSION} bytes")
    try:
        session = json.loads(text)
        json.dumps(session, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):  # UnicodeError is a ValueError
        raise _bad("is no JSON in UTF-8") from None
    if not isinstance(session, dict):
        raise _bad("has to be an object")
    return session


def _bad(detail: str) -> Refused:
    return Refused(Code.BAD_SESSION, f"session {detail}", param="session")
