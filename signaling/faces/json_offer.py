"""A JSON offer as aiortc's examples post it: `{"sdp", "type"}` in, the same with our answer out.

The answer also has the call's `id`, so that such a client can hang up and restart under
`/v1/realtime/calls/{id}`.
"""

import json
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from signaling.faces import described
from signaling.faces.body import read_body
from signaling.faces.described import JSON, WITH_KEY
from signaling.front import Front
from signaling.offer import check_offer
from signaling.refusal import Code, Refused

FACE = "json_offer"
DIALECT = "plain"

_OFFER = {
    "type": "object",
    "required": ["sdp", "type"],
    "properties": {
        "sdp": described.sdp_text("The offer"),
        "type": {"const": "offer"},
    },
}
_BEGUN = {
    **described.answer(200, "The answer, and the id of its call", {JSON: described.OBJECT}),
    **described.errors(*described.BEGINNING, *described.RESUMING, Code.BAD_JSON),
}


def routes(front: Front) -> APIRouter:
    """`/offer`."""
    router = APIRouter(tags=[FACE])

    @router.post(
        "/offer",
        summary="Begin a call",
        responses=_BEGUN,
        openapi_extra={
            **described.body({JSON: _OFFER}),
            **WITH_KEY,
            **described.query(described.RESUME),
        },
    )
    async def create(request: Request) -> JSONResponse:
        caller = await front.admit(request)
        offer = read_json_offer(await read_body(request, JSON))
        created = await front.begin(request, FACE, caller, offer, DIALECT, resumes=True)
        return JSONResponse(
            {"sdp": created.answer, "type": "answer", "id": created.call_id.render()},
            headers=created.headers,
        )

    return router


def read_json_offer(body: bytes) -> str:
    """The offer within the JSON. Raises `Refused` with `bad_json` or `bad_sdp`."""
    return offer_of(read_object(body))


def read_object(body: bytes) -> dict[str, Any]:
    """A body that is one JSON object. Raises `Refused` with `bad_json`."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        raise bad_json("the body is no JSON", None) from None
    if not isinstance(values, dict):
        raise bad_json("the body has to be an object", None)
    return values


def offer_of(values: dict[str, Any]) -> str:
    """Its members `sdp` and `type`. Raises `Refused` with `bad_json` or `bad_sdp`."""
    if values.get("type") != "offer":
        raise bad_json('type has to be "offer"', "type")
    if not isinstance(values.get("sdp"), str):
        raise bad_json("sdp has to be text", "sdp")
    return check_offer(values["sdp"])


def bad_json(message: str, param: str | None) -> Refused:
    return Refused(Code.BAD_JSON, message, param=param)
