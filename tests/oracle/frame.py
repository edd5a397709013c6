"""Ethernet frames with IPv4 or IPv6 and UDP, written by the book, header by header and sum by sum.

Pure. `build` makes what goes into the relay, right or wrong in every way that a test asks for;
`rewritten` makes what has to come out. Nothing of it is shared with the product.
"""

import functools
import ipaddress
import struct
from dataclasses import dataclass

from relayctl.wire.address import Address

VLAN, PROVIDER = 0x8100, 0x88A8  # IEEE 802.1Q and 802.1ad
IPV4, IPV6 = 0x0800, 0x86DD
UDP = 17
DONT_FRAGMENT = 0x4000

Tag = tuple[int, int]
"""Protocol identifier and control information, whose low 12 bits are the VLAN id."""

MACS = bytes.fromhex("02000000000b"), bytes.fromhex("02000000000a")  # destination, source


@functools.lru_cache(maxsize=65536)
def packed(host: str) -> bytes:
    """4 or 16 bytes."""
    return ipaddress.ip_address(host).packed


def ones_sum(data: bytes) -> int:
    """Sum of 16-bit words in ones' complement, RFC 1071, in 0-0xfffe: zero has one form here."""
    return int.from_bytes(data + bytes(len(data) % 2), "big") % 0xFFFF


def checksum(data: bytes) -> int:
    """RFC 1071; a sum of zero makes 0xffff."""
    return 0xFFFF - ones_sum(data)


def udp_checksum(source: Address, destination: Address, payload: bytes) -> int:
    """Made from nothing; never 0 (RFC 768, RFC 8200 section 8.1)."""
    size = 8 + len(payload)
    words = struct.pack("!IBBHHHHH", size, 0, 0, UDP, source[1], destination[1], size, 0)
    return checksum(packed(source[0]) + packed(destination[0]) + words + payload)


def udp_header(
    source: Address, destination: Address, payload: bytes, sum: int | None, length: int | None
) -> bytes:
    found = udp_checksum(source, destination, payload) if sum is None else sum
    size = 8 + len(payload) if length is None else length
    return struct.pack("!HHHH", source[1], destination[1], size, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Everything about a frame but addresses and payload. None = what is right."""

    macs: tuple[bytes, bytes] = MACS
    tags: tuple[Tag, ...] = ()
    ether_type: int | None = None
    ttl: int = 64
    tos: int = 0  # DSCP and ECN
    protocol: int = UDP  # behind the last extension header
    sum: int | None = None
    udp_length: int | None = None
    ip_length: int | None = None  # IPv4 total length, IPv6 payload length
    behind: bytes = b""  # inside the IP packet, behind the datagram
    padding: bytes = b""  # behind the IP packet
    # IPv4
    version: int | None = None
    ihl: int | None = None
    id: int = 0
    fragment: int = DONT_FRAGMENT  # flags and offset
    options: bytes = b""
    header_sum: int | None = None
    # IPv6
    flow_label: int = 0
    extensions: tuple[tuple[int, bytes], ...] = ()  # its number, the header but for its first byte


PLAIN = Shape()


def build(source: Address, destination: Address, payload: bytes, shape: Shape = PLAIN) -> bytes:
    """A frame; the family is that of `destination`."""
    udp = udp_header(source, destination, payload, shape.sum, shape.udp_length)
    body = udp + payload + shape.behind
    hosts = packed(source[0]), packed(destination[0])
    make = _ipv4 if len(hosts[1]) == 4 else _ipv6
    kind = IPV4 if len(hosts[1]) == 4 else IPV6
    packet = make(hosts, body, shape)
    return _ethernet(shape.ether_type or kind, shape) + packet + shape.padding


def _ethernet(kind: int, shape: Shape) -> bytes:
    tags = b"".join(struct.pack("!HH", *tag) for tag in shape.tags)
    return b"".join(shape.macs) + tags + kind.to_bytes(2, "big")


def _ipv4(hosts: tuple[bytes, bytes], body: bytes, shape: Shape) -> bytes:
    words = 5 + len(shape.options) // 4
    header = struct.pack(
        "!BBHHHBBH",
        (shape.version or 4) << 4 | (words if shape.ihl is None else shape.ihl),
        shape.tos,
        words * 4 + len(body) if shape.ip_length is None else shape.ip_length,
        shape.id,
        shape.fragment,
        shape.ttl,
        shape.protocol,
        0,
    )
    header += b"".join(hosts) + shape.options
    found = checksum(header) % 0xFFFF if shape.header_sum is None else shape.header_sum
    return header[:10] + found.to_bytes(2, "big") + header[12:] + body


def _ipv6(hosts: tuple[bytes, bytes], body: bytes, shape: Shape) -> bytes:
    numbers = [number for number, _ in shape.extensions] + [shape.protocol]
    for at, (_, rest) in reversed(list(enumerate(shape.extensions))):
        body = bytes([numbers[at + 1]]) + rest + body
    header = struct.pack(
        "!IHBB",
        (shape.version or 6) << 28 | shape.tos << 20 | shape.flow_label,
        len(body) if shape.ip_length is None else shape.ip_length,
        numbers[0],
        shape.ttl,
    )
    return header + b"".join(hosts) + body


def tags_of(ids: tuple[int, int]) -> tuple[Tag, ...]:
    """How we write VLAN ids, outer first, 0 = none: one tag is a customer's, the outer of two the
    provider's."""
    if not ids[0]:
        return ()
    return ((PROVIDER, ids[0]), (VLAN, ids[1])) if ids[1] else ((VLAN, ids[0]),)
