"""Routes whose functions take the request and nothing else.

FastAPI's way to a function walks through routers, reads parameters and bodies, checks what comes
out and keeps stacks of what to close: a third of the work that an offer is. Here it only tells of
the route in `/openapi.json`, and goes there when nothing else does.
"""

from collections.abc import Iterable

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from signaling.refusal import Refused


class BareRoute(APIRoute):
    """For `route_class_override=` of a route. Its function returns a response."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)  # which refuses it
            return
        response = await self.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


class Shortcut:
    """ASGI middleware: from the path straight to the bare route, if it is one without parameters.
    All else goes on to `app`."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._routes = {
            (method, route.path): route
            for route in routes
            if isinstance(route, BareRoute) and not route.param_convertors
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._routes.get((scope.get("method", ""), scope.get("path", "")))
        if route is None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        try:
            await route.handle(scope, receive, send)
        except Refused as refused:
            await refusal(refused)(scope, receive, send)


def refusal(refused: Refused) -> JSONResponse:
    """The answer."""
    return JSONResponse(refused.body(), refused.status, refused.headers())
