"""Read the ICE Binding request that opens a flow: whose ufrag does it carry?

MESSAGE-INTEGRITY is not verified here: the ICE password lives in the transceiver, not in the
relay. The XDP program walks attributes within the same bounds.
"""

import enum
import re
import struct
from dataclasses import dataclass

from relayctl.wire.packet_class import BINDING_REQUEST
from relayctl.wire.route_token import LENGTH

HEADER_SIZE = 20  # bytes, RFC 8489 section 5
MAGIC_COOKIE = 0x2112A442
USERNAME = 0x0006
END_OF_SIGNED = frozenset({0x0008, 0x001C, 0x8028})  # ignore what follows, section 14.5
UFRAG = re.compile(rb"[A-Za-z0-9+/]{4,256}")  # RFC 8839 section 5.4
MAX_BEFORE_USERNAME = 8  # attributes
MAX_OFFSET = 1024  # bytes; USERNAME must begin before it

_HEADER = struct.Struct("!HHI")  # type, length of the attributes, cookie
_ATTRIBUTE = struct.Struct("!HH")


class Reject(enum.StrEnum):
    """Why a datagram opens no flow."""

    NOT_BINDING_REQUEST = "not_binding_request"
    TRUNCATED = "truncated"
    NO_USERNAME = "no_username"
    BAD_USERNAME = "bad_username"


class StunError(ValueError):
    def __init__(self, reason: Reject, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class BindingRequest:
    local_ufrag: bytes  # the receiver's, so ours: RFC 8445 section 7.2.2
    remote_ufrag: bytes


def is_whole(datagram: bytes, kind: int) -> bool:
    """Whether this is one STUN message of that type: its cookie and length are right."""
    size = len(datagram) - HEADER_SIZE
    return (
        size >= 0 and size % 4 == 0 and _HEADER.unpack_from(datagram) == (kind, size, MAGIC_COOKIE)
    )


def transaction_of(message: bytes) -> bytes:
    """The 12 bytes that a response has in common with its request. `message` is whole."""
    return message[8:HEADER_SIZE]


def parse_binding_request(datagram: bytes) -> BindingRequest:
    """Parse one UDP payload. Raises `StunError`, and never anything else."""
    if len(datagram) < HEADER_SIZE:
        raise StunError(Reject.TRUNCATED, f"{len(datagram)} bytes, need {HEADER_SIZE}")
    kind, length, cookie = _HEADER.unpack_from(datagram)
    if (kind, cookie) != (BINDING_REQUEST, MAGIC_COOKIE):
        raise StunError(Reject.NOT_BINDING_REQUEST, f"type {kind:#06x} cookie {cookie:#010x}")
    if length % 4 or HEADER_SIZE + length != len(datagram):
        raise StunError(Reject.TRUNCATED, f"length {length} in {len(datagram)} bytes")
    local, _, remote = _username(datagram).partition(b":")
    if not (UFRAG.fullmatch(local) and UFRAG.fullmatch(remote)):
        raise StunError(Reject.BAD_USERNAME, "want <ufrag>:<ufrag>")
    return BindingRequest(local, remote)


def token_of(request: bytes) -> bytes | None:
    """What stands where a route token would: the characters before the USERNAME's ':', if that is
    their number. `request` is a whole Binding request. Whether they are ice-chars is not looked at,
    and nor is what follows: that is the endpoint's business."""
    try:
        username = _username(request)
    except StunError:
        return None
    return username[:LENGTH] if username[LENGTH : LENGTH + 1] == b":" else None


def _username(datagram: bytes) -> bytes:
    at = HEADER_SIZE
    last = min(len(datagram), MAX_OFFSET)
    for _ in range(MAX_BEFORE_USERNAME + 1):
        if at >= last:
            break
        # the length and `at` are multiples of 4, so a 4-byte read fits
        kind, size = _ATTRIBUTE.unpack_from(datagram, at)
        end = at + 4 + size
        if end > len(datagram):
            raise StunError(Reject.TRUNCATED, f"attribute {kind:#06x} at byte {at}")
        if kind == USERNAME:
            return datagram[at + 4 : end]
        if kind in END_OF_SIGNED:
            break
        at = end + -size % 4  # padded to 32 bits, RFC 8489 section 14
    raise StunError(Reject.NO_USERNAME, f"none in {len(datagram)} bytes")
