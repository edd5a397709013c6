"""The page to talk from: the files of `signaling/web`, read once at start."""

import hashlib
from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

FACE = "page"

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
HEADERS = {
    "Cache-Control": "no-cache",  # asked for each time, answered by 304
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; media-src 'self' blob:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Permissions-Policy": "microphone=(self)",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def routes() -> APIRouter:
    """`/` and one route for each file beside it."""
    router = APIRouter(tags=[FACE])
    for file in sorted(files("signaling").joinpath("web").iterdir(), key=lambda file: file.name):
        content_type = CONTENT_TYPES.get(PurePath(file.name).suffix)
        if content_type is None:
            continue
        path = "/" if file.name == "index.html" else f"/{file.name}"
        _add(router, path, file.read_bytes(), content_type)
    return router


def _add(router: APIRouter, path: str, content: bytes, content_type: str) -> None:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {**HEADERS, "Content-Type": content_type, "ETag": tag}

    @router.api_route(path, methods=["GET", "HEAD"], include_in_schema=False)
    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers)
