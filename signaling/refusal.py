"""Why a request is refused: a closed set of codes, each with its HTTP status.

Pure. A face raises `Refused`; `signaling.app` renders it as
`{"error": {"type", "code", "message", "param"}}`, the shape that Realtime clients read.
"""

import enum

MAX_MESSAGE = 300  # characters of a message that somebody else wrote


class Code(enum.StrEnum):
    """The codes made here; `Refused` of a transceiver keeps the code the transceiver gave."""

    BAD_SDP = "bad_sdp"
    BAD_JSON = "bad_json"
    BAD_FORM = "bad_form"
    BAD_SESSION = "bad_session"
    CALL_NOT_FOUND = "call_not_found"
    NO_SUCH_ROUTE = "no_such_route"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CALL_ENDED = "call_ended"
    TOO_MANY_HALF_OPEN = "too_many_half_open"
    NOT_ACCEPTABLE = "not_acceptable"
    CONFLICT = "conflict"
    BODY_TOO_LARGE = "body_too_large"
    WRONG_CONTENT_TYPE = "wrong_content_type"
    INTERNAL_ERROR = "internal_error"
    OWNER_GONE = "owner_gone"
    TRANSCEIVER_ERROR = "transceiver_error"
    NO_TRANSCEIVER = "no_transceiver"
    NO_INGRESS = "no_ingress"
    ALL_FULL = "all_full"


STATUS = {
    Code.BAD_SDP: 400,
    Code.BAD_JSON: 400,
    Code.BAD_FORM: 400,
    Code.BAD_SESSION: 400,
    Code.CALL_NOT_FOUND: 404,
    Code.NO_SUCH_ROUTE: 404,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.NOT_ACCEPTABLE: 406,
    Code.CONFLICT: 409,
    Code.CALL_ENDED: 410,
    Code.BODY_TOO_LARGE: 413,
    Code.WRONG_CONTENT_TYPE: 415,
    Code.TOO_MANY_HALF_OPEN: 429,
    Code.INTERNAL_ERROR: 500,
    Code.OWNER_GONE: 502,
    Code.TRANSCEIVER_ERROR: 502,
    Code.NO_TRANSCEIVER: 503,
    Code.NO_INGRESS: 503,
    Code.ALL_FULL: 503,
}


class Refused(Exception):
    """The request is not carried out. `str()` is for the client: what is wrong and the mend.

    `param` names the part of the request at fault. `retry_after_s` is set on every 429 and 503.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        param: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message[:MAX_MESSAGE])
        self.code: str = code
        self.status = STATUS[code]
        self.param = param
        self.retry_after_s = retry_after_s

    def body(self) -> dict[str, dict[str, str | None]]:
        """What the client reads."""
        return {
            "error": {
                "type": _kind(self.status),
                "code": self.code,
                "message": str(self),
                "param": self.param,
            }
        }

    def headers(self) -> dict[str, str]:
        """Headers that go with the status."""
        if self.retry_after_s is None:
            return {}
        return {"Retry-After": str(self.retry_after_s)}


def _kind(status: int) -> str:
    if status == 503:
        return "overloaded_error"
    return "invalid_request_error" if status < 500 else "server_error"
