import httpx
import pytest
from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from signaling.faces.bare import BareRoute, Shortcut
from signaling.refusal import Code, Refused

pytestmark = pytest.mark.anyio


async def create(request: Request) -> Response:
    body = (await request.body()).decode()
    if body == "bad":
        raise Refused(Code.RATE_LIMITED, "wait", retry_after_s=3)
    return JSONResponse({"got": body, "route": request.scope["route"].path}, 201)


def router(route_class: type[BareRoute] | None = BareRoute) -> APIRouter:
    made = APIRouter(prefix="/v1")
    for path in ("/x", "/x/{name}"):
        made.add_api_route(path, create, methods=["POST"], route_class_override=route_class)
    made.add_api_route("/plain", create, methods=["POST"])
    return made


def client(app: FastAPI | Shortcut) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x")


@pytest.mark.parametrize("route_class", [BareRoute, None])
async def test_the_function_has_the_request_and_the_document_has_the_route(
    route_class: type[BareRoute] | None,
) -> None:
    app = FastAPI()
    app.include_router(router(route_class))
    async with client(app) as asks:
        reply = await asks.post("/v1/x", content=b"hello")
        refused = await asks.get("/v1/x")
    assert (reply.status_code, reply.json()) == (201, {"got": "hello", "route": "/v1/x"})
    assert refused.status_code == 405
    assert list(app.openapi()["paths"]) == ["/v1/x", "/v1/x/{name}", "/v1/plain"]


async def test_a_shortcut_is_for_bare_routes_without_parameters() -> None:
    async with client(Shortcut(PlainTextResponse("longer"), router().routes)) as asks:
        reply = await asks.post("/v1/x", content=b"hello")
        assert (reply.status_code, reply.json()) == (201, {"got": "hello", "route": "/v1/x"})
        for method, path in (
            ("GET", "/v1/x"),
            ("POST", "/v1/x/name"),
            ("POST", "/v1/x/{name}"),
            ("POST", "/v1/plain"),
            ("POST", "/v1/x/"),
        ):
            assert (await asks.request(method, path)).text == "longer"


async def test_a_refusal_of_a_shortcut_is_an_answer() -> None:
    async with client(Shortcut(PlainTextResponse("longer"), router().routes)) as asks:
        reply = await asks.post("/v1/x", content=b"bad")
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "3")
    assert reply.json()["error"]["code"] == "rate_limited"


async def test_other_scopes_go_on() -> None:
    seen = []

    async def app(scope: object, receive: object, send: object) -> None:
        seen.append(scope)

    shortcut = Shortcut(app, router().routes)
    for scope in ({"type": "lifespan"}, {"type": "websocket", "path": "/v1/x", "method": "POST"}):
        await shortcut(scope, None, None)  # type: ignore[arg-type]
    assert len(seen) == 2
