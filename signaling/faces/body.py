"""Reading a request's body, with its limits. Shared by the faces."""

import asyncio

from starlette.requests import Request

from signaling.refusal import Code, Refused

MAX_BODY = 64 * 1024  # bytes; an offer of a browser has 2-10 KiB
TIME_S = 10.0  # for a whole body


def content_type_of(request: Request) -> str:
    """Without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(
    request: Request, content_type: str, limit: int = MAX_BODY, *, or_else: str = ""
) -> bytes:
    """The body of a request that has to be of `content_type`. Raises `Refused`: 415, which names
    `or_else` too, 413, or 408."""
    given = content_type_of(request)
    if given != content_type:
        shown = repr(given[:64]) if given else "none"
        raise Refused(
            Code.WRONG_CONTENT_TYPE,
            f"content type is {shown}; send {' or '.join(filter(None, (content_type, or_else)))}",
            param="Content-Type",
        )
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(TIME_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise Refused(
            Code.REQUEST_TIMEOUT, f"the body took more than {TIME_S:g} s; send it at once"
        ) from None
    return bytes(body)


def _too_large(limit: int) -> Refused:
    return Refused(Code.BODY_TOO_LARGE, f"the body has more than {limit} bytes")
