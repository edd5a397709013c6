"""How the routes are told in `/openapi.json`: what goes in, what comes out, how it may be refused.

FastAPI knows paths, names and parameters; bodies are read by hand (their limits come before their
content), so what is in them stands here and beside the routes. Pure but for `document`.
"""

from typing import Annotated, Any

from fastapi import FastAPI, Path
from fastapi.openapi.utils import get_openapi

from signaling.refusal import STATUS, Code

SDP = "application/sdp"
JSON = "application/json"

Responses = dict[int | str, dict[str, Any]]  # for `responses=` of a route
Extra = dict[str, Any]  # for `openapi_extra=`

CallIdText = Annotated[
    str,
    Path(
        description="Id of the call, from the Location of its answer",
        json_schema_extra={
            "format": "call-id",
            "pattern": "^rtc_[A-Za-z0-9_-]{24}_[A-Za-z0-9_-]{22}$",
        },
    ),
]

ADMISSION = (  # codes of a request that begins a call or a key
    *(Code.MISSING_API_KEY, Code.INVALID_API_KEY, Code.RATE_LIMITED, Code.KEYS_UNAVAILABLE),
    Code.REQUEST_TIMEOUT,
)
MANAGEMENT = (*ADMISSION, Code.API_KEY_NEEDED)
BODY = (Code.BODY_TOO_LARGE, Code.WRONG_CONTENT_TYPE, Code.REQUEST_TIMEOUT)
BEGINNING = (
    *(*ADMISSION, *BODY, Code.BAD_SDP, Code.NOT_ACCEPTABLE, Code.TOO_MANY_HALF_OPEN),
    *(Code.NO_TRANSCEIVER, Code.NO_INGRESS, Code.ALL_FULL, Code.OVERLOADED),
    Code.TRANSCEIVER_ERROR,
)
RESUMING = (
    *(Code.CALL_NOT_FOUND, Code.ALREADY_RESUMED, Code.RESUME_EXPIRED, Code.RESUME_UNAVAILABLE),
)
ON_CALL = (Code.CALL_NOT_FOUND, Code.CALL_ENDED, Code.OWNER_GONE, Code.TRANSCEIVER_ERROR)
RESTARTING = (*ON_CALL, *BODY, Code.BAD_SDP, Code.NOT_ACCEPTABLE, Code.CONFLICT)

WITH_KEY: Extra = {"security": [{"key": []}]}
MODEL = "model", "What the session's `model` is if it names none", {"type": "string"}
RESUME = (
    "resume",
    "Id of a call whose transceiver is gone: this one carries it on",
    {"type": "string", "pattern": "^rtc_[A-Za-z0-9_-]{24}_[A-Za-z0-9_-]{22}$"},
)
OBJECT: dict[str, Any] = {"type": "object", "additionalProperties": True}

SERVICE = """Begins calls: an SDP offer in, an SDP answer out, as OpenAI's Realtime calls API has
it, as WHIP, as Pipecat's small WebRTC transport, or as plain JSON.

`/v1/realtime?call_id=` is a WebSocket too (subprotocol `realtime`, an API key): the events of a
call, to read and to say from a server of yours."""

_TEXT = {"type": "string"}
_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["type", "code", "message", "param"],
            "additionalProperties": False,
            "properties": {
                "type": {"enum": ["invalid_request_error", "overloaded_error", "server_error"]},
                "code": {**_TEXT, "description": "One of a closed set, for programs"},
                "message": {**_TEXT, "description": "What is wrong and the mend, for people"},
                "param": {
                    "type": ["string", "null"],
                    "description": "The part of the request at fault",
                },
            },
        }
    },
}
_RETRY_AFTER = {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}}
_KEY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key; where a call begins, an ephemeral key `ek_…` too",
}


def errors(*codes: Code) -> Responses:
    """How a route refuses: one response for each status, which names the codes."""
    named: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        named.setdefault(STATUS[code], []).append(f"`{code}`")
    responses: Responses = {}
    for status, names in sorted(named.items()):
        content = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
        responses[status] = {"description": ", ".join(names), "content": content}
        if status in (429, 503):
            responses[status]["headers"] = _RETRY_AFTER
    return responses


def answer(status: int, description: str, content: Extra, *headers: str) -> Responses:
    """What comes when all is well: `content` is a schema by content type."""
    told = {kind: {"schema": schema} for kind, schema in content.items()}
    response: Extra = {"description": description, "content": told}
    if headers:
        response["headers"] = {name: {"required": True, "schema": _TEXT} for name in headers}
    return {status: response}


def body(content: Extra, *, required: bool = True) -> Extra:
    """The body of a request: `content` is a schema by content type."""
    told = {kind: {"schema": schema} for kind, schema in content.items()}
    return {"requestBody": {"required": required, "content": told}}


def query(*parameters: tuple[str, str, Extra]) -> Extra:
    """Parameters that are read by hand too: FastAPI's reading costs as much as all of a face."""
    told = [
        {"name": name, "in": "query", "description": description, "schema": schema}
        for name, description, schema in parameters
    ]
    return {"parameters": told}


def sdp_text(what: str) -> dict[str, Any]:
    """Schema of an SDP description."""
    return {**_TEXT, "format": "sdp", "description": what}


def sdp(what: str) -> Extra:
    """The content that is SDP and nothing else."""
    return {SDP: sdp_text(what)}


def document(app: FastAPI, *, keys_wanted: bool) -> None:
    """Let `/openapi.json` be complete. `keys_wanted`: the service asks for keys, so a route that
    takes one does not do without."""

    def told() -> dict[str, Any]:
        if app.openapi_schema is None:
            raw = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            app.openapi_schema = _finished(raw, keys_wanted)
        return app.openapi_schema

    app.openapi = told  # type: ignore[method-assign]


def _finished(schema: dict[str, Any], keys_wanted: bool) -> dict[str, Any]:
    """With the one form of errors and the keys, without FastAPI's own errors, which never come."""
    schema["components"] = {
        "schemas": {"Error": _ERROR},
        "securitySchemes": {"key": _KEY_SCHEME},
    }
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            if "security" in operation and not keys_wanted:
                operation["security"] = [{}, *operation["security"]]
    return schema
