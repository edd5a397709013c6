import httpx
import pytest
from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from signaling.faces.bare import BareRoute

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("route_class", [BareRoute, None])
async def test_the_function_has_the_request_and_the_document_has_the_route(
    route_class: type[BareRoute] | None,
) -> None:
    router = APIRouter(prefix="/v1")

    async def create(request: Request) -> Response:
        return JSONResponse({"got": (await request.body()).decode()}, 201)

    router.add_api_route("/x", create, methods=["POST"], route_class_override=route_class)
    app = FastAPI()
    app.include_router(router)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        reply = await client.post("/v1/x", content=b"hello")
    assert (reply.status_code, reply.json()) == (201, {"got": "hello"})
    assert list(app.openapi()["paths"]) == ["/v1/x"]
