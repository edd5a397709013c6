"""Routes whose functions take the request and nothing else.

FastAPI's way to a function reads parameters and bodies, checks what comes out and keeps two stacks
of what to close, a fifth of the work that an offer is. Here it only tells of the route in
`/openapi.json`.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response


class BareRoute(APIRoute):
    """For `route_class_override=` of a route. Its function returns a response."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self.endpoint
