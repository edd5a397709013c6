"""SDP text as blocks of attributes: the session and its m-lines (RFC 8866 section 5).

Pure. Lines that nobody asks for are not looked at: candidates, codecs, bandwidths, foreign
attributes may be as odd as they like.
"""

import re
from dataclasses import dataclass, field

from transceiver.sdp.error import Reason, SdpError

MAX_SIZE = 64 * 1024  # characters; browsers stay below 20 KiB with every codec they know
MAX_LINE = 4 * 1024
MAX_SECTIONS = 32

_MEDIA = re.compile(
    r"([!-~]{1,32}) +(\d{1,5})(?:/\d{1,5})? +([!-~]{1,32})((?: +[!-~]{1,32})+) *", re.ASCII
)


@dataclass(slots=True)
class Block:
    """A section, or the session. Attributes by lower-case name, in the order they came."""

    kind: str = ""
    port: int = 0
    protocol: str = ""
    formats: list[str] = field(default_factory=list)
    attributes: dict[str, list[str]] = field(default_factory=dict)

    def all(self, name: str) -> list[str]:
        """Values of each `a=<name>:<value>`; of a flag, `a=<name>`, an empty string."""
        return self.attributes.get(name, [])

    def first(self, name: str) -> str | None:
        values = self.all(name)
        return values[0] if values else None

    def has(self, name: str) -> bool:
        return name in self.attributes


def split(text: str) -> tuple[Block, list[Block]]:
    """The session block and the sections. Raises `SdpError(BAD_SDP)`."""
    if len(text) > MAX_SIZE:
        raise _bad(f"{len(text)} characters, at most {MAX_SIZE} are read: offer fewer codecs")
    lines = text.strip().split("\n")
    if lines[0].rstrip() != "v=0":
        raise _bad(f"it begins with {lines[0][:40]!r}, want the line `v=0`: send the raw offer")
    session = current = Block()
    sections: list[Block] = []
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise _bad(f"line {number} has {len(line)} characters, at most {MAX_LINE} are read")
        if line.startswith("m="):
            if len(sections) == MAX_SECTIONS:
                raise _bad(
                    f"line {number} is m-line {MAX_SECTIONS + 1}, at most {MAX_SECTIONS} are read"
                )
            current = _section(line[2:].rstrip(), number)
            sections.append(current)
        elif line.startswith("a="):
            name, _, value = line[2:].rstrip().partition(":")
            current.attributes.setdefault(name.lower(), []).append(value)
    return session, sections


def _section(value: str, number: int) -> Block:
    match = _MEDIA.fullmatch(value)
    if match is None or int(match[2]) > 65535:
        raise _bad(f"line {number}: `m={value[:60]}` is not `m=<kind> <port> <protocol> <formats>`")
    return Block(match[1].lower(), int(match[2]), match[3], match[4].split())


def _bad(detail: str) -> SdpError:
    return SdpError(Reason.BAD_SDP, detail)
