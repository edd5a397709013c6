"""The first look at an SDP offer: is it one at all?

Pure. Only what costs nothing is checked here, so that rubbish never crosses the inner network; the
transceiver reads the offer properly and has the last word.
"""

import re

from signaling.refusal import Code, Refused

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # JSON can spell one; it is no character


def read_offer(body: bytes) -> str:
    """The offer as text. Raises `Refused` with `bad_sdp`."""
    try:
        return check_offer(body.decode())
    except UnicodeDecodeError as error:
        raise _bad(f"byte {error.start} is not UTF-8") from None


def check_offer(text: str) -> str:
    """`text` if it may be an offer (RFC 8866 section 5). Raises `Refused` with `bad_sdp`."""
    if not text.strip():
        raise _bad("the body is empty; send the offer that setLocalDescription was given")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines[0] != "v=0":
        raise _bad("line 1 is not v=0")
    if not any(line.startswith("m=") for line in lines):
        raise _bad("it has no m= line, so it offers no media")
    for number, line in enumerate(lines, 1):
        if _CONTROL.search(line):
            raise _bad(f"line {number} has a control character")
        if _SURROGATE.search(line):
            raise _bad(f"line {number} has half of a surrogate pair")
    return text


def _bad(detail: str) -> Refused:
    return Refused(Code.BAD_SDP, f"the SDP offer cannot be read: {detail}", param="sdp")
