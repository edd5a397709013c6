"""Around every request: its id, one log line, its count, and an answer when the code fails.

ASGI middleware. It logs the route's pattern and the call's public part, never the path itself: the
path of a call holds its secret. Client addresses are masked. A WebSocket has its line at its end.
"""

import contextlib
import logging
import re
import secrets
import time
from collections.abc import Callable

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relayctl.wire.call_id import CallIdError, parse
from signaling.metrics import Metrics
from signaling.redaction import mask
from signaling.refusal import Code, Refused

CLIENT_GONE = 499  # nobody left to answer; only log and metrics see it
REQUEST_ID = "X-Request-Id"
SWITCHING = 101
FORBIDDEN = 403
BROKEN = 1011  # RFC 6455 section 7.4.1
WEBSOCKET = "WEBSOCKET"  # in place of a method
TOLD = frozenset({"POST", "PATCH", "DELETE", WEBSOCKET})  # others are logged at debug level

_REQUEST_ID = REQUEST_ID.lower().encode()
_GIVEN = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def peer_of(request: HTTPConnection) -> str:
    return request.client.host if request.client else ""


class RequestLog:
    """Wraps the routes. `client_of` tells a client's address, `clock` gives seconds."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        log: logging.Logger,
        client_of: Callable[[HTTPConnection], str] = peer_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._log = log
        self._client_of = client_of
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        stamp = (_REQUEST_ID, request_id.encode())
        begun = self._clock()
        status = 0

        async def stamped(message: Message) -> None:
            nonlocal status
            said = _status(message)
            if said is not None and status == 0:
                status = said
                if message["type"] != "websocket.close":
                    message["headers"] = [*message.get("headers", ()), stamp]
            await send(message)

        try:
            await self._app(scope, receive, stamped)
        except ClientDisconnect:
            status = status or CLIENT_GONE
        except Exception:
            self._log.exception("request=%s failed", request_id)
            if status == 0:
                refused = Refused(Code.INTERNAL_ERROR, f"it is our fault; request id {request_id}")
                await JSONResponse(refused.body(), refused.status)(scope, receive, stamped)
            elif scope["type"] == "websocket":
                with contextlib.suppress(Exception):  # it may be closed already
                    await send({"type": "websocket.close", "code": BROKEN})
        finally:
            self._record(scope, status, request_id, self._clock() - begun)

    def _record(self, scope: Scope, status: int, request_id: str, seconds: float) -> None:
        method = scope.get("method", WEBSOCKET)
        self._metrics.requests_of(_face(scope), str(status)).inc()
        self._log.log(
            logging.INFO if method in TOLD else logging.DEBUG,
            "%s %s %d %.1fms request=%s call=%s client=%s",
            method,
            _pattern(scope),
            status,
            seconds * 1000,
            request_id,
            _call(scope),
            mask(self._client_of(HTTPConnection(scope))),
        )


def _status(message: Message) -> int | None:
    """The HTTP status that the message begins an answer with."""
    match message["type"]:
        case "http.response.start" | "websocket.http.response.start":
            return int(message["status"])
        case "websocket.accept":
            return SWITCHING
        case "websocket.close":
            return FORBIDDEN  # of one that was not accepted
    return None


def _request_id(scope: Scope) -> str:
    """The one that the client gave, if it may stand in a log."""
    given = next((value for name, value in scope["headers"] if name == _REQUEST_ID), b"")
    return given.decode() if _GIVEN.fullmatch(given) else secrets.token_hex(16)


def _face(scope: Scope) -> str:
    """Of the route; a WebSocket's has no tags, and its face says so itself."""
    if face := scope.get("state", {}).get("face"):
        return str(face)
    route = scope.get("route")
    return str(route.tags[0]) if route is not None and getattr(route, "tags", None) else "none"


def _pattern(scope: Scope) -> str:
    route = scope.get("route")
    return str(route.path) if route is not None else "(no route)"


def _call(scope: Scope) -> str:
    """The public part of the call id: of the path or query, or of the call that was begun."""
    if begun := scope.get("state", {}).get("call"):
        return str(begun)
    given = scope.get("path_params", {}).get("call_id")
    if given is None:
        given = QueryParams(scope.get("query_string", b"")).get("call_id", "")
    try:
        return parse(given).public
    except CallIdError:
        return "-"
