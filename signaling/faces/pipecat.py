"""Pipecat's `SmallWebRTCTransport`, as `@pipecat-ai/small-webrtc-transport` speaks it.

An offer and its answer are JSON; `pc_id` in both is the id of the call, so whoever has it needs no
key. An offer with the `pc_id` of a call renegotiates it, with `restart_pc` it replaces the call by
a new one. Clients give up on a 4xx and try three times on anything else.

`POST /start` makes a session for a call that will come: its id is an ephemeral key, and stands in
the path that the client then offers to.
"""

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from relayctl.wire.call_id import CallIdError, parse
from signaling.faces import described
from signaling.faces.body import MAX_BODY, read_body
from signaling.faces.described import JSON, WITH_KEY
from signaling.faces.json_offer import bad_json, offer_of, read_object
from signaling.front import Front
from signaling.ice import MAX_CANDIDATES, check_candidate, check_number
from signaling.ice_servers import IceServers, ice_config
from signaling.refusal import Code, Refused
from signaling.session import MAX_SESSION, Session, read_session

FACE = "pipecat"
DIALECT = "rtvi"
TRANSPORT = "webrtc"
MAX_ASKED = MAX_BODY + MAX_SESSION
SESSION_S = 3600  # a session may begin calls, and replace broken ones, for so long

_ENDED = (404, 410)

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_DATA = {
    "description": "What the application sends along; all but `session` is ignored",
    "properties": {"session": {"type": ["object", "null"], "description": "A Realtime one"}},
}
_OFFER = {
    "type": "object",
    "required": ["sdp", "type"],
    "properties": {
        "sdp": described.sdp_text("The offer"),
        "type": {"const": "offer"},
        "pc_id": {**_TEXT_OR_NULL, "description": "Id of the call that it is about"},
        "restart_pc": {"description": "true: replace that call"},
        "request_data": _DATA,
        "requestData": {"description": "The same by another name, where that is missing"},
    },
}
_CANDIDATE = {
    "type": "object",
    "required": ["candidate"],
    "properties": {
        "candidate": {**_TEXT_OR_NULL, "format": "ice-candidate"},
        "sdp_mid": _TEXT_OR_NULL,
        "sdp_mline_index": {"type": ["integer", "null"]},
    },
}
_CANDIDATES = {
    "type": "object",
    "required": ["pc_id"],
    "properties": {
        "pc_id": _TEXT,
        "candidates": {"type": "array", "maxItems": MAX_CANDIDATES, "items": _CANDIDATE},
    },
}
_START = {
    "type": "object",
    "properties": {"transport": {"const": TRANSPORT}, "body": _DATA},
}
_SESSION_ERRORS = (Code.BAD_JSON, Code.BAD_SESSION)

_NEGOTIATION: dict[str, Any] = {
    "responses": {
        **described.answer(200, "The answer, and the id of its call", {JSON: described.OBJECT}),
        **described.errors(*described.BEGINNING, *described.RESTARTING, *_SESSION_ERRORS),
    },
    "openapi_extra": {**described.body({JSON: _OFFER}), **WITH_KEY},
}
_TRICKLING: dict[str, Any] = {
    "responses": {
        **described.answer(200, "They could be some", {JSON: described.OBJECT}),
        **described.errors(*described.ON_CALL, *described.BODY, Code.BAD_JSON, Code.BAD_CANDIDATE),
    },
    "openapi_extra": described.body({JSON: _CANDIDATES}),
}
_STARTING: dict[str, Any] = {
    "responses": {
        **described.answer(200, "A session and its ICE servers", {JSON: described.OBJECT}),
        **described.errors(
            *described.MANAGEMENT, *described.BODY, *_SESSION_ERRORS, Code.TOO_MANY_KEYS
        ),
    },
    "openapi_extra": {**described.body({JSON: _START}), **WITH_KEY},
}
_STATUS = {
    **described.answer(200, "Calls would find a place", {JSON: described.OBJECT}),
    **described.errors(Code.NO_TRANSCEIVER, Code.NO_INGRESS, Code.ALL_FULL),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What comes with an offer. `call`: the id of the call that it is about, if of any."""

    offer: str = field(repr=False)
    call: str | None = field(repr=False)
    replace: bool  # the call by a new one
    session: Session = field(repr=False)


def routes(front: Front, ice_servers: IceServers) -> APIRouter:
    """`/start`, `/status`, `/api/offer`, and the last one below `/sessions/{session_id}`."""
    calls = front.calls
    router = APIRouter(tags=[FACE])
    below = "/sessions/{session_id}/api/offer"

    async def negotiate(request: Request, key: str | None = None) -> JSONResponse:
        # Before anybody is asked for a key: the call it names may be key enough.
        asked = read_asked(await read_body(request, JSON, MAX_ASKED))
        if asked.call is not None and not asked.replace:
            answer = await follow(request, asked.call, asked.offer)
            if answer is not None:
                return answer
        caller = await front.access.start(request, key)
        if asked.call is not None and asked.replace:
            with contextlib.suppress(Refused):  # it may have ended, or its owner be gone
                await calls.hangup(asked.call)
        created = await front.begin(request, FACE, caller, asked.offer, DIALECT, asked.session)
        return _answer(created.answer, created.call_id.render(), created.headers)

    async def follow(request: Request, call: str, offer: str) -> JSONResponse | None:
        """A later offer of a call; None if it is over, and so the offer is for a new one."""
        _log_call(request, call)
        try:
            return _answer(await calls.restart(call, offer), call, {})
        except Refused as refused:
            if refused.status not in _ENDED:
                raise
            return None

    async def trickle(request: Request) -> JSONResponse:
        call = read_candidates(await read_body(request, JSON))
        _log_call(request, call)
        await calls.living(call)
        return JSONResponse({"status": "success"})

    @router.post("/api/offer", summary="Begin a call, or offer anew", **_NEGOTIATION)
    async def offer(request: Request) -> JSONResponse:
        return await negotiate(request)

    @router.patch("/api/offer", summary="Candidates of a call", **_TRICKLING)
    async def candidates(request: Request) -> JSONResponse:
        return await trickle(request)

    @router.post(below, summary="Begin a call of a session, or offer anew", **_NEGOTIATION)
    async def session_offer(session_id: str, request: Request) -> JSONResponse:
        return await negotiate(request, session_id)

    @router.patch(below, summary="Candidates of a call of a session", **_TRICKLING)
    async def session_candidates(session_id: str, request: Request) -> JSONResponse:
        return await trickle(request)

    @router.post("/start", summary="Make a session for calls", **_STARTING)
    async def start(request: Request) -> JSONResponse:
        await front.access.manage(request)
        session = read_start(await read_body(request, JSON, MAX_ASKED))
        minted = await front.access.mint(request, session, SESSION_S)
        return JSONResponse(
            {"sessionId": minted.text, "iceConfig": ice_config(ice_servers)},
            headers={"Cache-Control": "no-store"},
        )

    @router.get("/status", summary="Would a call find a place", responses=_STATUS)
    async def status() -> JSONResponse:
        calls.ready()
        return JSONResponse({"status": "ready", "transports": [TRANSPORT]})

    return router


def read_asked(body: bytes) -> Asked:
    """An offer with what Pipecat puts beside it. Raises `Refused`: `bad_json`, `bad_sdp`,
    `bad_session`."""
    values = read_object(body)
    call = values.get("pc_id")
    if call is not None and not isinstance(call, str):
        raise bad_json("pc_id has to be text or null", "pc_id")
    return Asked(
        offer_of(values),
        call or None,
        values.get("restart_pc") is True,
        _session(values.get("request_data", values.get("requestData"))),
    )


def read_candidates(body: bytes) -> str:
    """The call that the candidates are of; all of them could be some. An empty one, or null, is
    the end of them. Raises `Refused`: `bad_json`, `bad_candidate`."""
    values = read_object(body)
    call, candidates = values.get("pc_id"), values.get("candidates", [])
    if not isinstance(call, str):
        raise bad_json("pc_id has to be text", "pc_id")
    if not isinstance(candidates, list):
        raise bad_json("candidates has to be a list", "candidates")
    check_number(len(candidates))
    for each in candidates:
        candidate = each.get("candidate", 0) if isinstance(each, dict) else 0
        if candidate is not None and not isinstance(candidate, str):
            raise bad_json("a candidate has to be an object with text as `candidate`", "candidates")
        if candidate:
            check_candidate(candidate)
    return call


def read_start(body: bytes) -> Session:
    """The session that calls shall have. Raises `Refused`: `bad_json`, `bad_session`."""
    values = read_object(body or b"{}")
    if values.get("transport", TRANSPORT) != TRANSPORT:
        raise bad_json(f'transport has to be "{TRANSPORT}": there is no other here', "transport")
    return _session(values.get("body"))


def _session(data: object) -> Session:
    """`session` of what an application sends along; the rest is not for us."""
    session = data.get("session") if isinstance(data, dict) else None
    return {} if session is None else read_session(json.dumps(session).encode(), None)


def _answer(sdp: str, call: str, headers: dict[str, str]) -> JSONResponse:
    return JSONResponse({"sdp": sdp, "type": "answer", "pc_id": call}, headers=headers)


def _log_call(request: Request, call: str) -> None:
    with contextlib.suppress(CallIdError):
        request.state.call = parse(call).public
