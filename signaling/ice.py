"""ICE as clients tell it beside an offer: new credentials, and candidates one by one. Pure.

Candidates are read, and go nowhere: every client sends the first check itself, to the VIP of the
answer, and the check shows from where (a peer-reflexive candidate, RFC 8445 section 7.3.1.3). So
no address in them is ever resolved, sent to or kept, `.local` names included.
"""

import re
from dataclasses import dataclass, field

from signaling.refusal import Code, Refused

MAX_CANDIDATES = 64  # in one request; a host with ten addresses and two servers has some 40
MAX_CANDIDATE = 512  # characters

_CANDIDATE = re.compile(  # RFC 8839 section 5.1
    r"(?:a=)?(?:candidate:)?[A-Za-z0-9+/]{1,32} (?P<component>\d{1,3}) [A-Za-z0-9-]{1,16} \d{1,10} "
    r"[A-Za-z0-9.:%_-]{1,255} (?P<port>\d{1,5}) typ [a-z]{1,16}(?P<more>(?: [!-~]+ [!-~]+)*) ?",
    re.ASCII,
)
_UFRAG = re.compile(r" ufrag (\S+)")


@dataclass(frozen=True, slots=True)
class Credentials:
    """Of the client. Their letters are for the transceiver to judge."""

    ufrag: str
    pwd: str = field(repr=False)


def check_candidate(text: str, ufrag: str | None = None) -> None:
    """`text` is a candidate, as `RTCIceCandidate.candidate` or a line of SDP has it, and of the
    ICE generation `ufrag` if it names one. Raises `Refused` with `bad_candidate`."""
    match = _CANDIDATE.fullmatch(text) if len(text) <= MAX_CANDIDATE else None
    if match is None or int(match["component"]) > 256 or int(match["port"]) > 65535:
        raise _bad(
            "is none; send `candidate:<foundation> <component> <transport> <priority> <address> "
            "<port> typ <type>` (RFC 8839)"
        )
    of = _UFRAG.search(match["more"])
    if of and ufrag is not None and of[1] != ufrag:
        raise _bad(f"is of ufrag {of[1][:32]!r}, which is not that of its fragment")


def check_number(count: int) -> None:
    """Raises `Refused` when a request has more candidates than are read."""
    if count > MAX_CANDIDATES:
        raise _bad(f"is one of {count}; send at most {MAX_CANDIDATES} at once")


def _bad(detail: str) -> Refused:
    return Refused(Code.BAD_CANDIDATE, f"a candidate {detail}", param="candidate")
