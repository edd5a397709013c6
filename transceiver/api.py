"""The control API: HTTP in front of `calls.py`.

Errors are `{"error": {"type", "code", "message", "param"}}`.
`/v1` wants the bearer token, if there is one; health and metrics are for whoever reaches them.
"""

import hmac
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from relayctl.wire import address
from relayctl.wire.address import Address, AddressError
from transceiver.admission import Refusal, Refused
from transceiver.calls import CallError, Calls, Reason
from transceiver.dialects.choice import DialectName
from transceiver.dialects.reading import WANTED, fits, loads
from transceiver.lifecycle import End
from transceiver.resume.resumption import Reason as ResumeReason
from transceiver.resume.resumption import ResumeError, Resumption
from transceiver.sdp import SdpError
from transceiver.sideband import MAX_SIDEBANDS, Sideband

MAX_BODY = 256 * 1024  # bytes; offers are below 10 KiB
MAX_SESSION = 64 * 1024
MAX_VIPS = 4
MAX_SUBJECT = 128  # characters
RETRY_AFTER_S = 1

SIDEBAND_DIALECTS = (DialectName.REALTIME, DialectName.REALTIME_BETA)

_STATUS = {Reason.UNKNOWN: 404, Reason.ENDED: 410}
_RESUME_STATUS = {
    ResumeReason.UNKNOWN: 404,
    ResumeReason.ALREADY: 409,
    ResumeReason.EXPIRED: 410,
    ResumeReason.UNAVAILABLE: 502,
}

_SURROGATE = re.compile(r"[\ud800-\udfff]")  # JSON can spell one; no answer of ours could quote it

Handler = Callable[[Request], Awaitable[Response]]


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


def create_app(
    calls: Calls,
    registry: CollectorRegistry,
    *,
    token: str,
    drain: Callable[[], None],
    status: Callable[[], Mapping[str, object]],
    resumption: Resumption,
) -> Starlette:
    """`token`: the bearer secret, empty for none. `drain`: let the process end with its calls.
    `resumption`: carries on the calls of other processes."""

    async def create(request: Request) -> Response:
        body = await _body(request)
        asked = _text(body, "offer"), _vips(body), _dialect(body), _subject(body), _session(body)
        old = _text(body, "resume") if "resume" in body else None
        resumed = None if old is None else await resumption.take(old, _subject(body))
        try:
            call_id, answer = calls.create(*asked, resumed)
        except Exception as error:
            if resumed is not None:
                await resumption.release(resumed)
            if isinstance(error, ValueError) and not isinstance(error, SdpError):
                raise ApiError(400, "bad_vips", str(error), "vips") from None
            raise
        return JSONResponse({"id": call_id, "answer": answer}, 201)

    async def restart(request: Request) -> Response:
        call_id, body = _call_id(request), await _body(request)
        if "ice" in body:
            answer = calls.restart_ice(call_id, *_credentials(body["ice"]))
        else:
            answer = calls.restart(call_id, _text(body, "offer"))
        return JSONResponse({"answer": answer})

    async def finish(request: Request) -> Response:
        calls.finish(_call_id(request))
        return Response(status_code=202)

    async def hang_up(request: Request) -> Response:
        call_id, subject = _call_id(request), request.query_params.get("subject")
        if request.query_params.get("reason") == End.RESUMED:
            await calls.hand_over(call_id, subject)
        else:
            calls.hang_up(call_id, subject)
        return Response(status_code=204)

    async def describe(request: Request) -> Response:
        return JSONResponse(calls.describe(_call_id(request)))

    async def events(socket: WebSocket) -> None:
        authorize(socket)
        dialect = calls.sideband(_sideband_dialect(socket))
        call = calls.find(_call_id(socket), socket.query_params.get("subject"))
        if call.watchers >= MAX_SIDEBANDS:
            detail = f"{MAX_SIDEBANDS} sidebands follow the call already; close one"
            raise ApiError(429, "too_many_sidebands", detail)
        sideband = Sideband(socket, dialect)
        line = call.watch(sideband)
        try:
            await socket.accept()
            await sideband.run(lambda event: line.prompt(event, calls.now()))
        finally:
            line.unwatch(sideband)

    async def begin_drain(request: Request) -> Response:
        drain()
        return JSONResponse(status(), 202)

    async def show_status(request: Request) -> Response:
        return JSONResponse(status())

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        reason = calls.admission.closed(len(calls))
        load = {"calls": len(calls), "capacity": calls.admission.capacity}
        if reason is not None:
            return JSONResponse({"ready": False, **load, "reason": reason}, 503)
        return JSONResponse({"ready": True, **load})

    async def metrics(request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    def authorize(request: HTTPConnection) -> None:
        if token and not _knows(request, token):
            raise ApiError(401, "unauthorized", "want `Authorization: Bearer <control_token>`")

    def guarded(handler: Handler) -> Handler:
        async def authorized(request: Request) -> Response:
            authorize(request)
            return await handler(request)

        return authorized

    return Starlette(
        routes=[
            Route("/v1/calls", guarded(create), methods=["POST"]),
            Route("/v1/calls/{id}/restart", guarded(restart), methods=["POST"]),
            Route("/v1/calls/{id}/finish", guarded(finish), methods=["POST"]),
            Route("/v1/calls/{id}", guarded(hang_up), methods=["DELETE"]),
            Route("/v1/calls/{id}", guarded(describe), methods=["GET"]),
            WebSocketRoute("/v1/calls/{id}/events", events),
            Route("/v1/drain", guarded(begin_drain), methods=["POST"]),
            Route("/v1/status", guarded(show_status), methods=["GET"]),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
        ],
        exception_handlers={
            ApiError: _show_api_error,
            CallError: _show_call_error,
            Refused: _show_refused,
            ResumeError: _show_resume_error,
            SdpError: _show_sdp_error,
            HTTPException: _show_http_error,
            ClientDisconnect: _show_disconnect,
            500: _show_fault,
        },
    )


def _knows(request: HTTPConnection, token: str) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), token.encode())


def _call_id(request: HTTPConnection) -> str:
    return str(request.path_params["id"])


async def _body(request: Request) -> dict[str, Any]:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise ApiError(413, "body_too_large", f"more than {MAX_BODY} bytes")
    try:
        body = loads(data)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise ApiError(400, "invalid_json", "the body has to be a JSON object")
    return body


def _text(body: dict[str, Any], param: str) -> str:
    value = body.get(param)
    if not isinstance(value, str) or _SURROGATE.search(value):
        raise ApiError(400, "invalid_parameter", f"{param}: want text", param)
    return value


def _credentials(ice: object) -> tuple[str, str]:
    """ICE username fragment and password of the client."""
    if not isinstance(ice, dict):
        raise ApiError(400, "invalid_parameter", "ice: want an object with ufrag and pwd", "ice")
    return _text(ice, "ufrag"), _text(ice, "pwd")


def _vips(body: dict[str, Any]) -> tuple[Address, ...]:
    texts = body.get("vips")
    if not isinstance(texts, list) or not 0 < len(texts) <= MAX_VIPS:
        raise ApiError(400, "bad_vips", f"want a list of 1 to {MAX_VIPS} addresses", "vips")
    try:
        return tuple(address.parse(str(text)) for text in texts)
    except AddressError as error:
        raise ApiError(400, "bad_vips", str(error), "vips") from None


def _subject(body: dict[str, Any]) -> str:
    """On whose behalf the call is, for limits: a name that signaling gives, no secret."""
    value = body.get("subject", "")
    if not isinstance(value, str) or len(value) > MAX_SUBJECT:
        want = f"want text of at most {MAX_SUBJECT} characters"
        raise ApiError(400, "invalid_parameter", want, "subject")
    return value


def _session(body: dict[str, Any]) -> dict[str, Any]:
    """What the backend is asked for: a Realtime session object, or parts of one."""
    session = body.get("session", {})
    if not isinstance(session, dict):
        raise ApiError(400, "invalid_session", "want an object", "session")
    text = json.dumps(session, ensure_ascii=False)
    if len(text.encode(errors="surrogatepass")) > MAX_SESSION:
        raise ApiError(400, "session_too_large", f"more than {MAX_SESSION} bytes", "session")
    if _SURROGATE.search(text) or not fits(session):
        raise ApiError(400, "invalid_session", f"want text that is UTF-8; {WANTED}", "session")
    return session


def _dialect(body: dict[str, Any]) -> DialectName:
    return _one_of(tuple(DialectName), body.get("dialect", DialectName.REALTIME))


def _sideband_dialect(socket: WebSocket) -> DialectName:
    return _one_of(SIDEBAND_DIALECTS, socket.query_params.get("dialect", DialectName.REALTIME))


def _one_of(known: tuple[DialectName, ...], name: object) -> DialectName:
    for dialect in known:
        if dialect == name:
            return dialect
    raise ApiError(400, "unknown_dialect", f"want one of {', '.join(known)}", "dialect")


def _error(
    status: int,
    code: str,
    message: str,
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"type": kind, "code": code, "message": message, "param": param}
    return JSONResponse({"error": error}, status, headers)


async def _show_api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _error(error.status, error.code, str(error), error.param)


async def _show_call_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CallError)
    return _error(_STATUS[error.reason], error.reason, str(error))


async def _show_resume_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ResumeError)
    return _error(_RESUME_STATUS[error.reason], error.reason, str(error), "resume")


async def _show_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    status = 429 if error.reason is Refusal.SUBJECT else 503
    headers = {"Retry-After": str(RETRY_AFTER_S)}
    return _error(status, error.reason, str(error), headers=headers)


async def _show_sdp_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, SdpError)
    return _error(error.reason.status, error.reason, str(error), "offer")


async def _show_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
    return _error(error.status_code, code, str(error.detail))


async def _show_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it


async def _show_fault(request: Request, error: Exception) -> Response:
    return _error(500, "internal_error", "a fault of the transceiver; its log says more")
