"""A JSON offer as aiortc's examples post it: `{"sdp", "type"}` in, the same with our answer out.

The answer also has the call's `id`, so that such a client can hang up and restart under
`/v1/realtime/calls/{id}`.
"""

import json
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from signaling.faces.body import read_body
from signaling.front import Front
from signaling.offer import check_offer
from signaling.refusal import Code, Refused

FACE = "json_offer"
DIALECT = "plain"

_JSON_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["sdp", "type"],
                    "properties": {"sdp": {"type": "string"}, "type": {"const": "offer"}},
                }
            }
        },
    }
}


def routes(front: Front) -> APIRouter:
    """`/offer`."""
    router = APIRouter(tags=[FACE])

    @router.post("/offer", openapi_extra=_JSON_BODY)
    async def create(request: Request) -> JSONResponse:
        caller = await front.admit(request)
        offer = read_json_offer(await read_body(request, "application/json"))
        created = await front.begin(request, FACE, caller, offer, DIALECT)
        return JSONResponse(
            {"sdp": created.answer, "type": "answer", "id": created.call_id.render()}
        )

    return router


def read_json_offer(body: bytes) -> str:
    """The offer within the JSON. Raises `Refused` with `bad_json` or `bad_sdp`."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        raise _bad("the body is no JSON", None) from None
    if not isinstance(values, dict):
        raise _bad("the body has to be an object with sdp and type", None)
    if values.get("type") != "offer":
        raise _bad('type has to be "offer"', "type")
    if not isinstance(values.get("sdp"), str):
        raise _bad("sdp has to be text", "sdp")
    return check_offer(values["sdp"])


def _bad(message: str, param: str | None) -> Refused:
    return Refused(Code.BAD_JSON, message, param=param)
