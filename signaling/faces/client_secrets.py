"""Ephemeral keys for browsers: a server with an API key asks for one, and hands it on.

The OpenAI Realtime API has two ways to ask: `POST /v1/realtime/client_secrets`, and the older
`POST /v1/realtime/sessions`, whose calls speak the beta API. The session asked for here is tied to
the key: what a browser asks beside it does not count.
"""

import json
import secrets
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from signaling.access.access import Minted
from signaling.faces import described
from signaling.faces.body import read_body
from signaling.faces.described import JSON, WITH_KEY
from signaling.front import Front
from signaling.refusal import Code, Refused
from signaling.session import MAX_DEPTH, MAX_SESSION, Session, fits

FACE = "client_secrets"
DEFAULT_LIFE_S = 600
MIN_LIFE_S, MAX_LIFE_S = 10, 7200
OBJECTS = {
    "realtime": "realtime.session",
    "transcription": "realtime.transcription_session",
}
READ_ONLY = ("id", "object", "expires_at", "client_secret")  # ours to say

_LIFE = {
    "type": ["object", "null"],
    "properties": {
        "anchor": {"const": "created_at"},
        "seconds": {"type": "integer", "minimum": MIN_LIFE_S, "maximum": MAX_LIFE_S},
    },
}
_SESSION = {"type": ["object", "null"], "properties": {"type": {"enum": list(OBJECTS)}}}
_WISH = {"type": ["object", "null"], "properties": {"expires_after": _LIFE}}
_SECRET = {
    **described.answer(200, "The key, its expiry and its session", {JSON: described.OBJECT}),
    **described.errors(
        *(*described.MANAGEMENT, *described.BODY, Code.BAD_JSON, Code.TOO_MANY_KEYS)
    ),
}


def _body(properties: dict[str, Any], *, strict: bool = False) -> dict[str, Any]:
    """`strict`: nothing else may be there."""
    schema = {"type": "object", "properties": properties, "additionalProperties": not strict}
    return {**described.body({JSON: schema}, required=False), **WITH_KEY}


def routes(front: Front) -> APIRouter:
    """`/v1/realtime/client_secrets` and `/v1/realtime/sessions`."""
    router = APIRouter(prefix="/v1/realtime", tags=[FACE])

    @router.post(
        "/client_secrets",
        summary="Make an ephemeral key for calls with a session",
        responses=_SECRET,
        openapi_extra=_body({"expires_after": _LIFE, "session": _SESSION}, strict=True),
    )
    async def create(request: Request) -> JSONResponse:
        await front.access.manage(request)
        asked = await _asked(request)
        if unknown := sorted(asked.keys() - {"session", "expires_after"}):
            raise _bad(f"{unknown[0]!r} is unknown; there are session and expires_after", None)
        session = _ours_removed(_object(asked.get("session"), "session"))
        life_s = _life(asked.get("expires_after"), "expires_after")
        session["type"] = kind = session.get("type", "realtime")
        if not isinstance(kind, str) or kind not in OBJECTS:
            raise _bad("the type of a session is realtime or transcription", "session.type")
        minted = await front.access.mint(request, session, life_s)
        return _secret(
            {
                "value": minted.text,
                "expires_at": minted.expires,
                "session": _shown(session, OBJECTS[kind]),
            }
        )

    @router.post(
        "/sessions",
        summary="Make an ephemeral key for calls of the beta API",
        responses=_SECRET,
        openapi_extra=_body({"client_secret": _WISH}),
    )
    async def create_beta(request: Request) -> JSONResponse:
        await front.access.manage(request)
        asked = await _asked(request)
        wish = _object(asked.get("client_secret"), "client_secret")
        life_s = _life(wish.get("expires_after"), "client_secret.expires_after")
        session = _ours_removed(asked)
        minted = await front.access.mint(request, session, life_s, beta=True)
        shown = _shown(session, OBJECTS["realtime"])
        return _secret({**shown, "client_secret": _client_secret(minted)})

    return router


async def _asked(request: Request) -> Session:
    """The JSON object of the body; nothing at all is an empty one. Raises `Refused`."""
    headers = request.headers
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return {}
    body = await read_body(request, JSON, MAX_SESSION)
    try:
        asked = json.loads(body)
        json.dumps(asked, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):  # UnicodeError is a ValueError
        raise _bad("the body is no JSON in UTF-8", None) from None
    if not isinstance(asked, dict):
        raise _bad("the body has to be an object", None)
    return asked


def _object(value: object, param: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _bad(f"{param} has to be an object", param)
    return value


def _life(value: object, param: str) -> int:
    """Seconds from now. Raises `Refused`."""
    asked = _object(value, param)
    if asked.get("anchor", "created_at") != "created_at":
        raise _bad('anchor has to be "created_at"', f"{param}.anchor")
    seconds = asked.get("seconds", DEFAULT_LIFE_S)
    if isinstance(seconds, float) and seconds.is_integer():
        seconds = int(seconds)  # a whole number, as JSON has it
    if type(seconds) is not int or not MIN_LIFE_S <= seconds <= MAX_LIFE_S:
        want = f"seconds has to be a whole number from {MIN_LIFE_S} to {MAX_LIFE_S}"
        raise _bad(want, f"{param}.seconds")
    return seconds


def _ours_removed(session: Session) -> Session:
    """Raises `Refused`."""
    if not fits(session):
        want = f"the session has more than {MAX_DEPTH} levels, or a number of hundreds of digits"
        raise _bad(want, "session")
    return {name: value for name, value in session.items() if name not in READ_ONLY}


def _shown(session: Session, kind: str) -> Session:
    """What is asked for, as a session that no call has yet."""
    return {**session, "id": f"sess_{secrets.token_hex(12)}", "object": kind, "expires_at": 0}


def _client_secret(minted: Minted) -> dict[str, str | int]:
    return {"value": minted.text, "expires_at": minted.expires}


def _secret(values: dict[str, Any]) -> JSONResponse:
    return JSONResponse(values, headers={"Cache-Control": "no-store"})


def _bad(message: str, param: str | None) -> Refused:
    return Refused(Code.BAD_JSON, message, param=param)
