"""The OpenAI Realtime calls API: a raw SDP offer in, 201 with the answer and the call's Location.

Clients set their base URL to us and stay as they are. An offer may come with a session, as parts
`sdp` and `session` of a form; `/v1/realtime` is the older address of the same. Answers have a fixed
length, never chunks: small clients read them into one buffer. POST to the Location is an ICE
restart, and `?resume=` carries a call on that has lost its transceiver: the original has neither.
There are no telephone calls here.
"""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from relayctl.wire import address
from signaling.faces import described
from signaling.faces.bare import BareRoute
from signaling.faces.body import MAX_BODY, content_type_of, read_body
from signaling.faces.described import JSON, SDP, WITH_KEY, CallIdText
from signaling.faces.dialect import dialect_of
from signaling.faces.form import FORM, MAX_PARTS, read_form
from signaling.fleet.control import INGRESS, STEERING
from signaling.fleet.flow_path import FlowPaths
from signaling.front import Front
from signaling.offer import read_offer
from signaling.refusal import Code, Refused
from signaling.session import MAX_SESSION, Session, read_session

FACE = "openai"
MAX_FORM = MAX_BODY + MAX_SESSION + 4096

_FORM_SCHEMA = {
    "type": "object",
    "required": ["sdp"],
    "maxProperties": MAX_PARTS,
    "additionalProperties": {"type": "string", "description": "Nobody reads it"},
    "properties": {
        "sdp": described.sdp_text("The offer"),
        "session": {**described.OBJECT, "description": "A Realtime session, or parts of one"},
    },
}
_OFFER = {
    **described.body({**described.sdp("The offer"), FORM: _FORM_SCHEMA}),
    **WITH_KEY,
    **described.query(described.MODEL, described.RESUME),
}
_BEGUN = {
    **described.answer(
        201, "The answer", described.sdp("The answer"), "Location", INGRESS, STEERING
    ),
    **described.errors(
        *(*described.BEGINNING, *described.RESUMING, Code.BAD_FORM, Code.BAD_SESSION)
    ),
}
_RESTARTED = {
    **described.answer(200, "The answer", described.sdp("The answer")),
    **described.errors(*described.RESTARTING),
}
_ENDED = described.errors(*described.MANAGEMENT, *described.ON_CALL)
_SEEN = {
    **described.answer(200, "What is known now", {JSON: described.OBJECT}),
    **described.errors(*described.ON_CALL),
}
_NO_SIP = described.errors(*described.MANAGEMENT, Code.SIP_ONLY)


def routes(front: Front, paths: FlowPaths) -> APIRouter:
    """`/v1/realtime/calls` and everything below it, and `/v1/realtime`."""
    calls = front.calls
    router = APIRouter(prefix="/v1/realtime", tags=[FACE])

    async def create(request: Request) -> Response:
        caller = await front.admit(request)
        offer, session = await _asked(request, request.query_params.get("model"))
        dialect = dialect_of(request, caller)
        created = await front.begin(request, FACE, caller, offer, dialect, session, resumes=True)
        location = f"{router.prefix}/calls/{created.call_id.render()}"
        return _sdp(created.answer, 201, {**created.headers, "Location": location})

    for at, summary in (("/calls", "Begin a call"), ("", "Begin a call (the older address)")):
        router.add_api_route(
            at,
            create,
            methods=["POST"],
            operation_id="create" + at.replace("/", "_"),
            status_code=201,
            summary=summary,
            response_class=Response,
            responses=_BEGUN,
            openapi_extra=_OFFER,
            route_class_override=BareRoute,
        )

    @router.post(
        "/calls/{call_id}",
        summary="Restart ICE, or offer anew",
        response_class=Response,
        responses=_RESTARTED,
        openapi_extra=described.body(described.sdp("The offer")),
    )
    async def restart(call_id: CallIdText, request: Request) -> Response:
        offer = read_offer(await read_body(request, SDP))
        return _sdp(await calls.restart(call_id, offer), 200, {})

    @router.post(
        "/calls/{call_id}/hangup",
        summary="End a call",
        response_class=Response,
        responses=_ENDED,
        openapi_extra=WITH_KEY,
    )
    async def hangup(call_id: CallIdText, request: Request) -> Response:
        caller = await front.access.hang_up(request)
        await calls.hangup(call_id, caller.subject)
        return Response(status_code=200)

    @router.delete(
        "/calls/{call_id}",
        summary="End a call",
        status_code=204,
        response_class=Response,
        responses=_ENDED,
        openapi_extra=WITH_KEY,
    )
    async def delete(call_id: CallIdText, request: Request) -> Response:
        caller = await front.access.hang_up(request)
        await calls.hangup(call_id, caller.subject)
        return Response(status_code=204)

    @router.get("/calls/{call_id}", summary="The state of a call", responses=_SEEN)
    async def describe(call_id: CallIdText) -> JSONResponse:
        _, call = await calls.describe(call_id)
        return _private(call)

    @router.get("/calls/{call_id}/path", summary="Who forwards its packets", responses=_SEEN)
    async def path(call_id: CallIdText) -> JSONResponse:
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

    async def telephone(call_id: CallIdText, request: Request) -> Response:
        await front.access.manage(request)
        verb = request.url.path.rpartition("/")[2]
        raise Refused(Code.SIP_ONLY, f"{verb} is for telephone calls (SIP); this one is WebRTC")

    for verb in ("accept", "reject", "refer"):
        router.add_api_route(
            f"/calls/{{call_id}}/{verb}",
            telephone,
            methods=["POST"],
            operation_id=f"{verb}_call",
            summary=f"{verb.capitalize()} a telephone call: refused, there are none here",
            status_code=400,
            response_class=Response,
            responses=_NO_SIP,
            openapi_extra=WITH_KEY,
        )

    return router


async def _asked(request: Request, model: str | None) -> tuple[str, Session]:
    """The offer, and the session that it is for."""
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
