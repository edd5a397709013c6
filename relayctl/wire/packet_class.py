"""Which protocol a UDP payload belongs to, by its first byte (RFC 7983 section 7)."""

import enum

BINDING_REQUEST = 0x0001  # RFC 8489 section 3
BINDING_SUCCESS = 0x0101
BINDING_ERROR = 0x0111

_STUN_HEADER = 20  # bytes
_RTP_HEADER = 12
_RTCP_TYPES = range(192, 224)  # RFC 5761 section 4


class PacketClass(enum.Enum):
    STUN = "stun"
    DTLS = "dtls"
    RTP = "rtp"  # and RTCP
    OTHER = "other"


def _class_of(first: int) -> PacketClass:
    if first < 4:
        return PacketClass.STUN
    if 20 <= first < 64:
        return PacketClass.DTLS
    if 128 <= first < 192:
        return PacketClass.RTP
    return PacketClass.OTHER


_CLASSES = tuple(_class_of(first) for first in range(256))


def classify(payload: bytes) -> PacketClass:
    return _CLASSES[payload[0]] if payload else PacketClass.OTHER


def stun_type(payload: bytes) -> int | None:
    """Message type of something that looks like STUN, or None."""
    if len(payload) < _STUN_HEADER or payload[0] > 3:
        return None
    return int.from_bytes(payload[:2], "big")


def is_rtcp(payload: bytes) -> bool:
    """Tell RTCP from RTP in a payload of class RTP (RFC 5761 section 4)."""
    return len(payload) > 1 and payload[1] in _RTCP_TYPES


def ssrc_of(payload: bytes) -> int | None:
    """Synchronisation source of an RTP packet; None for RTCP and everything else."""
    if len(payload) < _RTP_HEADER or payload[0] >> 6 != 2 or payload[1] in _RTCP_TYPES:
        return None
    return int.from_bytes(payload[8:12], "big")
