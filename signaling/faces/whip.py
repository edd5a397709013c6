"""WHIP, RFC 9725: what encoders and ingest libraries speak. Audio comes in; who offers `sendrecv`
hears the backend too, on the same call.

POST an offer to `/whip`; the call is at the Location from then on: PATCH has candidates or new ICE
credentials, DELETE ends it. The ETag counts the answers of the call, so each ICE restart has its
own, and any replica can compare it.
"""

import re
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from signaling.faces import described
from signaling.faces.body import read_body
from signaling.faces.described import SDP, WITH_KEY, CallIdText
from signaling.faces.sdp_fragment import (
    MAX_FRAGMENT,
    SDP_FRAGMENT,
    Fragment,
    fragment_of,
    read_fragment,
)
from signaling.front import Front
from signaling.ice import Credentials
from signaling.ice_servers import IceServers, links
from signaling.offer import read_offer
from signaling.refusal import Code, Refused

FACE = "whip"
DIALECT = "plain"

ENDPOINT_METHODS = "OPTIONS, POST"
CALL_METHODS = "DELETE, OPTIONS, PATCH"

_ANY = "*"
_VERSION = re.compile(r"^o=\S+ \d+ (\d+) ", re.MULTILINE)


_FRAGMENT_TEXT = {SDP_FRAGMENT: {"type": "string", "format": "sdp-fragment"}}
_OFFER = {**described.body(described.sdp("The offer")), **WITH_KEY}
_BEGUN = {
    **described.answer(201, "The answer", described.sdp("The answer"), "Location", "ETag"),
    **described.errors(*described.BEGINNING),
}
_FRAGMENT = {
    **described.body(_FRAGMENT_TEXT),
    "parameters": [
        {
            "name": "If-Match",
            "in": "header",
            "schema": {"type": "string"},
            "description": "ETag of the latest answer, or * to restart ICE",
        }
    ],
}
_PATCHED = {
    **described.answer(200, "ICE restarts: our credentials", _FRAGMENT_TEXT, "ETag"),
    204: {"description": "The candidates could be some"},
    **described.errors(
        *(*described.RESTARTING, Code.BAD_FRAGMENT, Code.BAD_CANDIDATE),
        *(Code.PRECONDITION_REQUIRED, Code.PRECONDITION_FAILED),
    ),
}
_ENDED = {
    200: {"description": "It has ended"},
    **described.errors(*described.ON_CALL),
}


def routes(front: Front, ice_servers: IceServers) -> APIRouter:
    """`/whip` and the calls below it."""
    calls = front.calls
    router = APIRouter(prefix="/whip", tags=[FACE])
    endpoint_options = {
        "Allow": ENDPOINT_METHODS,
        "Accept-Post": SDP,
        # a client that finds PATCH here trickles
        "Access-Control-Allow-Methods": "DELETE, OPTIONS, PATCH, POST",
        **links(server for server in ice_servers if server.credential is None),
    }
    call_options = {"Allow": CALL_METHODS, "Accept-Patch": SDP_FRAGMENT}

    @router.post(
        "",
        summary="Begin a call",
        status_code=201,
        response_class=Response,
        responses=_BEGUN,
        openapi_extra=_OFFER,
    )
    async def create(request: Request) -> Response:
        caller = await front.admit(request)
        offer = read_offer(await read_body(request, SDP))
        created = await front.begin(request, FACE, caller, offer, DIALECT)
        headers = {
            **created.headers,
            **links(ice_servers),
            "Location": f"{router.prefix}/{created.call_id.render()}",
            "ETag": _tag_of(created.answer),
            "Accept-Patch": SDP_FRAGMENT,
            "Content-Type": SDP,
        }
        return Response(created.answer.encode(), 201, headers)

    @router.patch(
        "/{call_id}",
        summary="Candidates of a call, or new ICE credentials",
        response_class=Response,
        responses=_PATCHED,
        openapi_extra=_FRAGMENT,
    )
    async def patch(call_id: CallIdText, request: Request) -> Response:
        fragment = read_fragment(await read_body(request, SDP_FRAGMENT, MAX_FRAGMENT))
        tags = _tags(request)
        call = await calls.living(call_id)
        if not tags & {_ANY, f'"{call.get("version")}"'}:
            raise Refused(
                Code.PRECONDITION_FAILED,
                "If-Match is not the ETag of this call's latest answer, so this belongs to ICE "
                "credentials that were replaced",
                param="If-Match",
            )
        credentials = _restart(fragment, tags, call)
        if credentials is None:
            return Response(status_code=204)
        answer = await calls.restart(call_id, credentials)
        headers = {"ETag": _tag_of(answer), "Content-Type": SDP_FRAGMENT}
        return Response(fragment_of(answer).encode(), 200, headers)

    @router.delete("/{call_id}", summary="End a call", response_class=Response, responses=_ENDED)
    async def delete(call_id: CallIdText) -> Response:
        await calls.hangup(call_id)
        return Response(status_code=200)

    @router.options("", include_in_schema=False)
    async def options() -> Response:
        return Response(headers=endpoint_options)

    @router.options("/{call_id}", include_in_schema=False)
    async def options_of_call(call_id: str) -> Response:
        return Response(headers=call_options)

    return router


def _tag_of(answer: str) -> str:
    """The version in its o= line, as a strong ETag."""
    version = _VERSION.search(answer)
    return f'"{version[1]}"' if version else '""'


def _tags(request: Request) -> frozenset[str]:
    """Of If-Match. Some clients send the tag as `ETag`, which nothing else uses in a request."""
    given = request.headers.get("if-match") or request.headers.get("etag") or ""
    tags = frozenset(filter(None, (tag.strip() for tag in given.split(","))))
    if not tags:
        raise Refused(
            Code.PRECONDITION_REQUIRED,
            "If-Match is missing; send the ETag of the latest answer, or * to restart ICE",
            param="If-Match",
        )
    return tags


def _restart(fragment: Fragment, tags: frozenset[str], call: dict[str, Any]) -> Credentials | None:
    """What to restart ICE with; None for more candidates of what is under way.

    The same credentials once more, alone and for whatever is there, are a restart whose answer was
    lost: it gets the same answer."""
    new = fragment.credentials
    if new is None or new.ufrag != call.get("client_ufrag"):
        return new
    again = _ANY in tags and not fragment.candidates and not fragment.ended
    return new if again else None
