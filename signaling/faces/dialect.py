"""Which names of Realtime events a client wants: general availability's, or the beta API's."""

from starlette.requests import HTTPConnection

from signaling.access.access import Caller

REALTIME = "realtime"
BETA = "realtime-beta"

HEADER = "openai-beta"
SUBPROTOCOL = "openai-beta.realtime-v1"


def dialect_of(request: HTTPConnection, caller: Caller) -> str:
    """As its header, its WebSocket's subprotocol or its ephemeral key says."""
    by_header = "realtime=v1" in request.headers.get(HEADER, "")
    by_subprotocol = SUBPROTOCOL in request.scope.get("subprotocols", ())
    return BETA if by_header or by_subprotocol or caller.beta else REALTIME
