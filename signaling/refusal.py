"""Why a request is refused: a closed set of codes, each with its HTTP status.

Pure. A face raises `Refused`; `signaling.app` renders it as
`{"error": {"type", "code", "message", "param"}}`, the shape that Realtime clients read.
"""

import enum

MAX_MESSAGE = 300  # characters of a message that somebody else wrote


class Code(enum.StrEnum):
    """The codes made here; `Refused` of a transceiver keeps the code the transceiver gave."""

    BAD_REQUEST = "bad_request"
    BAD_SDP = "bad_sdp"
    BAD_JSON = "bad_json"
    BAD_FORM = "bad_form"
    BAD_SESSION = "bad_session"
    SIP_ONLY = "sip_only"
    CALL_ID_NEEDED = "call_id_needed"
    BAD_CANDIDATE = "bad_candidate"
    BAD_FRAGMENT = "bad_fragment"
    MISSING_API_KEY = "missing_api_key"
    INVALID_API_KEY = "invalid_api_key"
    API_KEY_NEEDED = "api_key_needed"
    CALL_NOT_FOUND = "call_not_found"
    NO_SUCH_ROUTE = "no_such_route"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CALL_ENDED = "call_ended"
    ALREADY_RESUMED = "already_resumed"
    RESUME_EXPIRED = "resume_expired"
    PRECONDITION_REQUIRED = "precondition_required"
    TOO_MANY_HALF_OPEN = "too_many_half_open"
    RATE_LIMITED = "rate_limited"
    TOO_MANY_SIDEBANDS = "too_many_sidebands"
    TOO_MANY_KEYS = "too_many_keys"
    NOT_ACCEPTABLE = "not_acceptable"
    REQUEST_TIMEOUT = "request_timeout"
    CONFLICT = "conflict"
    PRECONDITION_FAILED = "precondition_failed"
    BODY_TOO_LARGE = "body_too_large"
    WRONG_CONTENT_TYPE = "wrong_content_type"
    HEAD_TOO_LARGE = "head_too_large"
    INTERNAL_ERROR = "internal_error"
    OWNER_GONE = "owner_gone"
    RESUME_UNAVAILABLE = "resume_unavailable"
    TRANSCEIVER_ERROR = "transceiver_error"
    NO_TRANSCEIVER = "no_transceiver"
    NO_INGRESS = "no_ingress"
    ALL_FULL = "all_full"
    OVERLOADED = "overloaded"
    KEYS_UNAVAILABLE = "keys_unavailable"


STATUS = {
    Code.BAD_REQUEST: 400,
    Code.BAD_SDP: 400,
    Code.BAD_JSON: 400,
    Code.BAD_FORM: 400,
    Code.BAD_SESSION: 400,
    Code.SIP_ONLY: 400,
    Code.CALL_ID_NEEDED: 400,
    Code.BAD_CANDIDATE: 400,
    Code.BAD_FRAGMENT: 400,
    Code.MISSING_API_KEY: 401,
    Code.INVALID_API_KEY: 401,
    Code.API_KEY_NEEDED: 403,
    Code.CALL_NOT_FOUND: 404,
    Code.NO_SUCH_ROUTE: 404,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.NOT_ACCEPTABLE: 406,
    Code.REQUEST_TIMEOUT: 408,
    Code.CONFLICT: 409,
    Code.ALREADY_RESUMED: 409,
    Code.CALL_ENDED: 410,
    Code.RESUME_EXPIRED: 410,
    Code.PRECONDITION_FAILED: 412,
    Code.BODY_TOO_LARGE: 413,
    Code.WRONG_CONTENT_TYPE: 415,
    Code.PRECONDITION_REQUIRED: 428,
    Code.TOO_MANY_HALF_OPEN: 429,
    Code.RATE_LIMITED: 429,
    Code.TOO_MANY_SIDEBANDS: 429,
    Code.TOO_MANY_KEYS: 429,
    Code.HEAD_TOO_LARGE: 431,
    Code.INTERNAL_ERROR: 500,
    Code.OWNER_GONE: 502,
    Code.RESUME_UNAVAILABLE: 502,
    Code.TRANSCEIVER_ERROR: 502,
    Code.NO_TRANSCEIVER: 503,
    Code.NO_INGRESS: 503,
    Code.ALL_FULL: 503,
    Code.OVERLOADED: 503,
    Code.KEYS_UNAVAILABLE: 503,
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
        headers = {}
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(self.retry_after_s)
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status == 408:  # what is left of the body cannot be told from a next request
            headers["Connection"] = "close"
        return headers


def _kind(status: int) -> str:
    if status == 503:
        return "overloaded_error"
    return "invalid_request_error" if status < 500 else "server_error"
