"""STUN messages of ICE connectivity checks (RFC 8489, RFC 8445 section 7).

Sans-IO. Reading is ours and strict, since these bytes come from anybody: aioice's parser lets
attributes run past the end and `struct.error` escape. Integrity and writing are aioice's codec.
"""

import enum
import hmac
import struct
import zlib
from dataclasses import dataclass, field

from aioice import stun

from relayctl.wire.address import Address

HEADER_SIZE = 20  # bytes, RFC 8489 section 5
MAX_SIZE = 1280  # bytes; RFC 8489 section 6.1 keeps messages below the smallest path MTU
MAGIC_COOKIE = 0x2112A442
TRANSACTION_ID_SIZE = 12
TIE_BREAKER_SIZE = 8

BINDING_REQUEST = 0x0001
BINDING_SUCCESS = 0x0101
BINDING_ERROR = 0x0111

USERNAME = 0x0006
MESSAGE_INTEGRITY = 0x0008
ERROR_CODE = 0x0009
PRIORITY = 0x0024
USE_CANDIDATE = 0x0025
FINGERPRINT = 0x8028
ICE_CONTROLLED = 0x8029
ICE_CONTROLLING = 0x802A

# Value sizes in bytes, RFC 8489 section 14 and RFC 8445 section 16.1.
SIZES = {
    MESSAGE_INTEGRITY: (20, 20),
    USERNAME: (1, 513),  # both ufrags at their limit of 256
    ERROR_CODE: (4, 767),
    PRIORITY: (4, 4),
    USE_CANDIDATE: (0, 0),
    FINGERPRINT: (4, 4),
    ICE_CONTROLLED: (8, 8),
    ICE_CONTROLLING: (8, 8),
}

# Of a peer-reflexive candidate with the highest local preference, RFC 8445 section 5.1.2.
PEER_REFLEXIVE_PRIORITY = 110 << 24 | 65535 << 8 | 255

_HEADER = struct.Struct("!HHI12s")
_ATTRIBUTE = struct.Struct("!HH")


class Reject(enum.StrEnum):
    """Why a datagram is no connectivity check and no response to one."""

    NOT_STUN = "not_stun"
    NOT_A_CHECK = "not_a_check"
    MALFORMED = "malformed"
    BAD_FINGERPRINT = "bad_fingerprint"


class StunError(ValueError):
    def __init__(self, reason: Reject, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Credentials:
    """One generation of ICE credentials (RFC 8445 section 5.3): ours, and the client's."""

    ufrag: str
    pwd: str = field(repr=False)
    remote_ufrag: str
    remote_pwd: str = field(repr=False)


class Message:
    """A well-formed Binding message; `verify` it before you believe a word."""

    __slots__ = ("_datagram", "_integrity_at", "attributes", "kind", "transaction_id")

    def __init__(self, kind: int, transaction_id: bytes, datagram: bytes) -> None:
        self.kind = kind
        self.transaction_id = transaction_id
        self.attributes: dict[
            int, bytes
        ] = {}  # those that MESSAGE-INTEGRITY covers, if it is there
        self._datagram = datagram
        self._integrity_at = 0

    @property
    def signed(self) -> bool:
        return self._integrity_at > 0

    def verify(self, pwd: str) -> bool:
        """Whether MESSAGE-INTEGRITY is there and right for the short-term credential `pwd`."""
        if not self._integrity_at:
            return False
        expected = stun.message_integrity(self._datagram[: self._integrity_at], pwd.encode())
        return hmac.compare_digest(expected, self.attributes[MESSAGE_INTEGRITY])


def parse(datagram: bytes) -> Message:
    """Read one UDP payload. Raises `StunError`, and never anything else."""
    size = len(datagram)
    if size < HEADER_SIZE:
        raise StunError(Reject.NOT_STUN, f"{size} bytes, need {HEADER_SIZE}")
    kind, length, cookie, transaction_id = _HEADER.unpack_from(datagram)
    if cookie != MAGIC_COOKIE:
        raise StunError(Reject.NOT_STUN, f"cookie {cookie:#010x}")
    if kind not in (BINDING_REQUEST, BINDING_SUCCESS, BINDING_ERROR):
        raise StunError(Reject.NOT_A_CHECK, f"type {kind:#06x}")
    if length % 4 or HEADER_SIZE + length != size or size > MAX_SIZE:
        raise StunError(Reject.MALFORMED, f"length {length} in {size} bytes")
    message = Message(kind, transaction_id, datagram)
    _read_attributes(message, datagram)
    return message


def _read_attributes(message: Message, datagram: bytes) -> None:
    at, size = HEADER_SIZE, len(datagram)
    while at < size:  # both are multiples of 4: a 4-byte read fits
        kind, length = _ATTRIBUTE.unpack_from(datagram, at)
        end = at + 4 + length
        if end > size:
            raise StunError(Reject.MALFORMED, f"attribute {kind:#06x} ends {end - size} bytes late")
        least, most = SIZES.get(kind, (0, size))
        if not least <= length <= most:
            raise StunError(Reject.MALFORMED, f"attribute {kind:#06x} of {length} bytes")
        value = datagram[at + 4 : end]
        if kind == FINGERPRINT:
            _check_fingerprint(datagram, at, end, value)
        elif not message._integrity_at and kind not in message.attributes:
            # Only the first of a kind counts, and nothing behind the signature: RFC 8489
            # sections 14 and 14.5.
            message.attributes[kind] = value
            if kind == MESSAGE_INTEGRITY:
                message._integrity_at = at
        at = end + -length % 4  # padded to 32 bits


def _check_fingerprint(datagram: bytes, at: int, end: int, value: bytes) -> None:
    if end != len(datagram):
        raise StunError(Reject.MALFORMED, "FINGERPRINT is not the last attribute")
    if zlib.crc32(datagram[:at]) ^ stun.FINGERPRINT_XOR != int.from_bytes(value, "big"):
        raise StunError(Reject.BAD_FINGERPRINT, "the CRC does not match")


def write_check(transaction_id: bytes, credentials: Credentials, tie_breaker: bytes) -> bytes:
    """Our connectivity check, in the controlled role (RFC 8445 section 7.2.4)."""
    message = stun.Message(stun.Method.BINDING, stun.Class.REQUEST, transaction_id)
    message.attributes["USERNAME"] = f"{credentials.remote_ufrag}:{credentials.ufrag}"
    message.attributes["PRIORITY"] = PEER_REFLEXIVE_PRIORITY
    message.attributes["ICE-CONTROLLED"] = int.from_bytes(tie_breaker, "big")
    message.add_message_integrity(credentials.remote_pwd.encode())
    return bytes(message)


def write_success(request: Message, client: Address, pwd: str) -> bytes:
    """The answer to an authentic check: where it came from (RFC 8445 section 7.3.1)."""
    message = stun.Message(stun.Method.BINDING, stun.Class.RESPONSE, request.transaction_id)
    message.attributes["XOR-MAPPED-ADDRESS"] = client
    message.add_message_integrity(pwd.encode())
    return bytes(message)


def write_role_conflict(request: Message, pwd: str) -> bytes:
    """487, signed: clients ignore an unsigned one (RFC 8445 section 7.3.1.1)."""
    message = stun.Message(stun.Method.BINDING, stun.Class.ERROR, request.transaction_id)
    message.attributes["ERROR-CODE"] = (487, "Role Conflict")
    message.add_message_integrity(pwd.encode())
    return bytes(message)
