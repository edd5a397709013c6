"""The OpenAI Realtime calls API: a raw SDP offer in, 201 with the answer and the call's Location.

Clients set their base URL to us and stay as they are. An offer may come with a session, as parts
`sdp` and `session` of a form. Answers have a fixed length, never chunks: small clients read them
into one buffer. POST to the Location is an ICE restart, which the original does not have.
"""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from relayctl.wire import address
from signaling.faces.body import MAX_BODY, content_type_of, read_body
from signaling.faces.form import FORM, read_form
from signaling.flow_path import FlowPaths
from signaling.front import Front
from signaling.offer import read_offer
from signaling.refusal import Code, Refused
from signaling.session import MAX_SESSION, Session, read_session

SDP = "application/sdp"
FACE = "openai"
DIALECT = "realtime"
BETA_DIALECT = "realtime-beta"
MAX_FORM = MAX_BODY + MAX_SESSION + 4096

_SDP_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {SDP: {"schema": {"type": "string"}}}}
}
_OFFER_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            SDP: {"schema": {"type": "string"}},
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["sdp"],
                    "properties": {"sdp": {"type": "string"}, "session": {"type": "object"}},
                }
            },
        },
    }
}


def routes(front: Front, paths: FlowPaths) -> APIRouter:
    """`/v1/realtime/calls` and everything below it."""
    calls = front.calls
    router = APIRouter(prefix="/v1/realtime/calls", tags=[FACE])

    @router.post("", status_code=201, response_class=Response, openapi_extra=_OFFER_BODY)
    async def create(request: Request) -> Response:
        caller = await front.admit(request)
        offer, session = await _asked(request)
        beta = "realtime=v1" in request.headers.get("openai-beta", "")
        dialect = BETA_DIALECT if beta else DIALECT
        created = await front.begin(request, FACE, caller, offer, dialect, session)
        location = f"{router.prefix}/{created.call_id.render()}"
        return _sdp(created.answer, 201, {"Location": location})

    @router.post("/{call_id}", response_class=Response, openapi_extra=_SDP_BODY)
    async def restart(call_id: str, request: Request) -> Response:
        offer = read_offer(await read_body(request, SDP))
        return _sdp(await calls.restart(call_id, offer), 200, {})

    @router.post("/{call_id}/hangup", response_class=Response)
    async def hangup(call_id: str) -> Response:
        await calls.hangup(call_id)
        return Response(status_code=200)

    @router.delete("/{call_id}", status_code=204, response_class=Response)
    async def delete(call_id: str) -> Response:
        await calls.hangup(call_id)
        return Response(status_code=204)

    @router.get("/{call_id}")
    async def describe(call_id: str) -> JSONResponse:
        _, call = await calls.describe(call_id)
        return _private(call)

    @router.get("/{call_id}/path")
    async def path(call_id: str) -> JSONResponse:
        endpoint, call = await calls.describe(call_id)
        client, vip = call.get("client"), call.get("vip")
        seen = await paths.find(client, vip)
        return _private(
            {
                "path": seen.path,
                "reason": seen.reason,
                "client": client,
                "vip": vip,
                "endpoint": address.render(endpoint),
                "packets": seen.packets or call.get("packets"),
                "ingress": seen.ingress,
            }
        )

    return router


async def _asked(request: Request) -> tuple[str, Session]:
    """The offer, and the session that it is for."""
    model = request.query_params.get("model")
    if content_type_of(request) != FORM:
        offer = read_offer(await read_body(request, SDP, or_else=FORM))
        return offer, read_session(None, model)
    body = await read_body(request, FORM, MAX_FORM)
    form = read_form(body, request.headers["content-type"])
    if not form.get("sdp"):
        raise Refused(Code.BAD_SDP, "the form has no part sdp with the offer; add it", param="sdp")
    return read_offer(form["sdp"]), read_session(form.get("session"), model)


def _sdp(text: str, status: int, headers: dict[str, str]) -> Response:
    return Response(text.encode(), status, {**headers, "Content-Type": SDP})


def _private(values: dict[str, Any]) -> JSONResponse:
    return JSONResponse(values, headers={"Cache-Control": "no-store"})
