"""Ethernet frames as far as the fault hop needs them: find the UDP datagram, change one port.

Pure. Everything that is not an unfragmented IPv4 UDP datagram is opaque.
"""

import enum
from dataclasses import dataclass

from relayctl.wire.address import Address
from relayctl.wire.packet_class import PacketClass, classify, is_rtcp

_ETHERNET = 14  # bytes
_IPV4 = b"\x08\x00"
_UDP = 17
_FRAGMENT = 0x3FFF  # more-fragments flag and offset
_SOURCE_PORT, _DESTINATION_PORT, _CHECKSUM = 0, 2, 6  # offsets in the UDP header


class Kind(enum.StrEnum):
    """What a frame carries."""

    STUN = "stun"
    DTLS = "dtls"
    RTP = "rtp"
    RTCP = "rtcp"
    UDP = "udp"  # any other datagram
    OTHER = "other"  # TCP, ARP, ICMP, fragments


MEDIA = frozenset(Kind) - {Kind.OTHER}

_KINDS = {PacketClass.STUN: Kind.STUN, PacketClass.DTLS: Kind.DTLS, PacketClass.OTHER: Kind.UDP}


@dataclass(frozen=True, slots=True)
class Datagram:
    """A UDP datagram inside a frame; `at` is the offset of its UDP header."""

    source: Address
    destination: Address
    payload: bytes
    at: int

    @property
    def kind(self) -> Kind:
        found = classify(self.payload)
        if found is PacketClass.RTP:
            return Kind.RTCP if is_rtcp(self.payload) else Kind.RTP
        return _KINDS[found]


def parse(frame: bytes) -> Datagram | None:
    """The datagram in `frame`, or None."""
    if frame[12:14] != _IPV4 or len(frame) < _ETHERNET + 28 or frame[_ETHERNET + 9] != _UDP:
        return None
    at = _ETHERNET + (frame[_ETHERNET] & 15) * 4
    end = _ETHERNET + _u16(frame, _ETHERNET + 2)  # short frames are padded
    if _u16(frame, _ETHERNET + 6) & _FRAGMENT or not at + 8 <= end <= len(frame):
        return None
    source = _host(frame[_ETHERNET + 12 : _ETHERNET + 16]), _u16(frame, at + _SOURCE_PORT)
    destination = _host(frame[_ETHERNET + 16 : _ETHERNET + 20]), _u16(frame, at + _DESTINATION_PORT)
    return Datagram(source, destination, frame[at + 8 : end], at)


def with_source_port(frame: bytes, datagram: Datagram, port: int) -> bytes:
    """`frame` with another source port and a checksum that agrees."""
    return _with_port(frame, datagram.at, _SOURCE_PORT, port)


def with_destination_port(frame: bytes, datagram: Datagram, port: int) -> bytes:
    return _with_port(frame, datagram.at, _DESTINATION_PORT, port)


def _with_port(frame: bytes, at: int, field: int, port: int) -> bytes:
    changed = bytearray(frame)
    old, checksum = _u16(frame, at + field), _u16(frame, at + _CHECKSUM)
    changed[at + field : at + field + 2] = port.to_bytes(2, "big")
    if checksum:  # 0 = none was made, RFC 768
        total = (~checksum & 0xFFFF) + (~old & 0xFFFF) + port  # RFC 1624 section 3
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        changed[at + _CHECKSUM : at + 8] = (~total & 0xFFFF or 0xFFFF).to_bytes(2, "big")
    return bytes(changed)


def _u16(frame: bytes, at: int) -> int:
    return frame[at] << 8 | frame[at + 1]


def _host(packed: bytes) -> str:
    return "{}.{}.{}.{}".format(*packed)
