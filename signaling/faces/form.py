"""The parts of a `multipart/form-data` body (RFC 7578). Pure.

Flat, as the RFC has them: a part within a part is content, so nobody can make us dig.
"""

import email.message
import email.parser

from signaling.refusal import Code, Refused

FORM = "multipart/form-data"
MAX_PARTS = 8
MAX_BOUNDARY = 70  # characters, RFC 2046 section 5.1.1
MAX_HEAD = 1024  # bytes of what has parameters: reading them costs the square of their length


def read_form(body: bytes, content_type: str) -> dict[str, bytes]:
    """Contents of the parts by their names; `content_type` is the header with the boundary.

    Raises `Refused` with `bad_form`.
    """
    pieces = (b"\r\n" + body).split(b"\r\n--" + _boundary(content_type), MAX_PARTS + 2)
    if len(pieces) > MAX_PARTS + 2:
        raise _bad(f"the form has more than {MAX_PARTS} parts")
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise _bad("the body does not end with the boundary of its Content-Type")
    form: dict[str, bytes] = {}
    for piece in pieces[1:-1]:
        head, _, content = piece.partition(b"\r\n\r\n")
        name = _name(head.lstrip())
        if name is None or name in form:
            raise _bad("a part of the form has no name, or that of another")
        form[name] = content
    return form


def _name(head: bytes) -> str | None:
    if len(head) > MAX_HEAD:
        raise _bad(f"the headers of a part have more than {MAX_HEAD} bytes")
    text = head.decode(errors="replace")  # names are UTF-8, RFC 7578 section 5.1
    headers = email.parser.HeaderParser().parsestr(text)
    try:
        name = headers.get_param("name", header="content-disposition")
    except (TypeError, ValueError):  # RFC 2231: pieces in no order, an encoding that cannot be
        return None
    return name if isinstance(name, str) else None


def _boundary(content_type: str) -> bytes:
    if len(content_type) > MAX_HEAD:
        raise _bad(f"its Content-Type has more than {MAX_HEAD} bytes")
    header = email.message.Message()
    header["Content-Type"] = content_type
    try:
        boundary = header.get_boundary("")
    except (TypeError, ValueError):  # as in `_name`
        boundary = ""
    if not 0 < len(boundary) <= MAX_BOUNDARY:
        raise _bad("its Content-Type has no boundary")
    return boundary.encode(errors="replace")


def _bad(message: str) -> Refused:
    return Refused(Code.BAD_FORM, message)
