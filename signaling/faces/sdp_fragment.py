"""Trickle ICE fragments, `application/trickle-ice-sdpfrag`: read and write (RFC 8840 section 9).

Pure. A fragment has ICE credentials, and candidates below pseudo m-lines; with the other offer and
answer attributes it has nothing to do, so all else in it is passed over.
"""

import re
from dataclasses import dataclass

from signaling.ice import Credentials, check_candidate, check_number
from signaling.refusal import Code, Refused

SDP_FRAGMENT = "application/trickle-ice-sdpfrag"
MAX_FRAGMENT = 32 * 1024  # bytes

_LINE = re.compile(r"[a-z]=[\t\x20-\x7e\x80-\U0010ffff]*")


@dataclass(frozen=True, slots=True)
class Fragment:
    """`credentials`: those that all of it is for. `candidates`: as their lines have them."""

    credentials: Credentials | None
    candidates: tuple[str, ...]
    ended: bool  # no more candidates will come


def read_fragment(body: bytes) -> Fragment:
    """Raises `Refused`: `bad_fragment`, `bad_candidate`."""
    attributes = _attributes(body)
    ufrag, pwd = (_only(attributes, name) for name in ("ice-ufrag", "ice-pwd"))
    if (ufrag is None) != (pwd is None):
        raise _bad("it has a=ice-ufrag or a=ice-pwd alone; send both")
    candidates = tuple(value for name, value in attributes if name == "candidate")
    check_number(len(candidates))
    for candidate in candidates:
        check_candidate(candidate, ufrag)
    return Fragment(
        None if ufrag is None or pwd is None else Credentials(ufrag, pwd),
        candidates,
        any(name == "end-of-candidates" for name, _ in attributes),
    )


def fragment_of(answer: str) -> str:
    """What the SDP `answer` of a restart says of ICE: credentials, and the candidates with the
    m-line that they stand under."""
    sections = answer.split("\r\nm=")[1:]
    bundle = next(section for section in sections if "\r\na=candidate:" in section)
    head, *lines = bundle.split("\r\n")
    credentials = [line for line in lines if line.startswith(("a=ice-ufrag:", "a=ice-pwd:"))]
    rest = ("a=mid:", "a=candidate:", "a=end-of-candidates")
    media = [f"m={head}", *(line for line in lines if line.startswith(rest))]
    return "\r\n".join([*credentials, *media]) + "\r\n"


def _attributes(body: bytes) -> list[tuple[str, str]]:
    """Names and values of all a= lines."""
    try:
        lines = [line.removesuffix("\r") for line in body.decode().split("\n")]
    except UnicodeDecodeError as error:
        raise _bad(f"byte {error.start} is not UTF-8") from None
    for number, line in enumerate(lines, 1):
        if line and not _LINE.fullmatch(line):
            raise _bad(f"line {number} is not of the form <letter>=<value>")
    found = [line[2:].partition(":") for line in lines if line.startswith("a=")]
    if not found:
        raise _bad("it has no a= line; send credentials and candidates")
    return [(name, value) for name, _, value in found]


def _only(attributes: list[tuple[str, str]], name: str) -> str | None:
    """The value that every section has; sections of a bundle may repeat it."""
    values = {value for given, value in attributes if given == name}
    if len(values) > 1:
        raise _bad(f"it has {len(values)} different a={name}; a call has one transport")
    return next(iter(values), None)


def _bad(detail: str) -> Refused:
    return Refused(Code.BAD_FRAGMENT, f"the fragment cannot be read: {detail}")
