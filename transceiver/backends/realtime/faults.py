"""Why there is no server, for the client and in words for a log. Pure.

Nothing that the server wrote gets into the words: it may be about our key.
"""

import enum
import os
import ssl

from websockets.exceptions import ConnectionClosed


class Fault(enum.StrEnum):
    """Why there is no server."""

    UNAVAILABLE = "backend_unavailable"  # cannot connect, too late, or lost
    OVERLOADED = "backend_overloaded"  # it says so: HTTP 429 or 503
    UNAUTHORIZED = "backend_unauthorized"  # HTTP 401 or 403: our key, so the operator's affair


def of_status(status: int) -> Fault:
    """Of an HTTP status in answer to the handshake."""
    if status in (401, 403):
        return Fault.UNAUTHORIZED
    return Fault.OVERLOADED if status in (429, 503) else Fault.UNAVAILABLE


def reason(error: Exception) -> str:
    """Why an attempt to connect failed, in words."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS: {getattr(error, 'reason', None) or 'failed'}"
        case ConnectionClosed():
            return lost(error.rcvd.code if error.rcvd else None)
        case TimeoutError() if error.errno is None:
            return "nothing said within connect_s"
        case OSError() if error.errno is not None and error.errno > 0:
            return os.strerror(error.errno)  # asyncio writes its own into `strerror`
        case OSError() if error.strerror:
            return error.strerror  # of a name that has no address
    return type(error).__name__


def lost(code: int | None) -> str:
    """Why a connection ended; `code` of the server's close."""
    return "lost" if code is None else f"lost, code {code}"
