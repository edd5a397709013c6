"""The session that a client asks for with its offer: a Realtime session object, or parts of one.

Pure. It is handed on as it is; what it means is for the transceiver's backend.
"""

import json
from typing import Any

from signaling.refusal import Code, Refused

MAX_SESSION = 64 * 1024  # bytes
LARGEST = 2**1023  # of an integer; a reader that makes it a float still can
MAX_DEPTH = 32  # as the transceivers take it

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
    if not fits(session):
        raise _bad(f"has more than {MAX_DEPTH} levels, or a number of hundreds of digits")
    return session


def fits(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether a JSON value has no more than so many levels, and no whole number that is too large
    for a float."""
    if isinstance(value, dict):
        return depth > 0 and all(fits(item, depth - 1) for item in value.values())
    if isinstance(value, list):
        return depth > 0 and all(fits(item, depth - 1) for item in value)
    return not isinstance(value, int) or abs(value) < LARGEST


def _bad(detail: str) -> Refused:
    return Refused(Code.BAD_SESSION, f"session {detail}", param="session")
