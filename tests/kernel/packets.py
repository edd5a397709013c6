"""Ethernet frames with IPv4 or IPv6 and UDP, built and taken apart by the book: the reference that
the program's rewriting is compared with. Nothing here is shared with the product."""

import socket
import struct
from dataclasses import dataclass
from typing import Any

Address = tuple[str, int]

CLIENT_MAC = bytes.fromhex("02000000000a")
RELAY_MAC = bytes.fromhex("02000000000b")
COOKIE = 0x2112A442
UDP = 17
CUSTOMER_TAG, SERVICE_TAG = 0x8100, 0x88A8  # IEEE 802.1Q and 802.1ad
HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION = 0, 43, 44, 51, 60

Extension = tuple[int, bytes]
"""An IPv6 extension header: its number, and what follows its "next header" byte."""

EXTENSIONS: dict[str, Extension] = {
    "hop_by_hop": (HOP_BY_HOP, bytes.fromhex("00010400000000")),  # PadN, RFC 8200 section 4.3
    "routing": (ROUTING, bytes.fromhex("00fd0000000000")),  # no segments left, section 4.4
    "first_fragment": (FRAGMENT, bytes.fromhex("00000112345678")),  # section 4.5
    "later_fragment": (FRAGMENT, bytes.fromhex("00002012345678")),
    "whole_fragment": (FRAGMENT, bytes.fromhex("00000012345678")),  # RFC 6946
    "authentication": (AUTHENTICATION, bytes.fromhex("040000") + bytes(20)),  # RFC 4302
    "destination_options": (DESTINATION, bytes.fromhex("01010c") + bytes(12)),
}


def packed(host: str) -> bytes:
    """4 or 16 bytes."""
    return socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)


def checksum(data: bytes) -> int:
    """RFC 1071, one word after the other, carry by carry."""
    total = 0
    for (word,) in struct.iter_unpack("!H", data + bytes(len(data) % 2)):
        total += word
        if total > 0xFFFF:
            total -= 0xFFFF
    return total ^ 0xFFFF


def udp_checksum(source: Address, destination: Address, payload: bytes) -> int:
    """As it stands in a header: never 0 (RFC 768; RFC 8200 section 8.1)."""
    length = 8 + len(payload)
    header = struct.pack("!HHHH", source[1], destination[1], length, 0)
    addresses = packed(source[0]) + packed(destination[0])
    pseudo = addresses + struct.pack("!II", length, UDP)
    return checksum(pseudo + header + payload) or 0xFFFF


def ipv4(
    source: str,
    destination: str,
    body: bytes,
    *,
    ttl: int = 64,
    tos: int = 0,
    id: int = 0,
    fragment: int = 0x4000,  # flags and offset
    options: bytes = b"",
    protocol: int = UDP,
    ip_length: int | None = None,
) -> bytes:
    length = 20 + len(options) + len(body) if ip_length is None else ip_length
    first = 0x45 + len(options) // 4
    header = struct.pack("!BBHHHBBH", first, tos, length, id, fragment, ttl, protocol, 0)
    header += packed(source) + packed(destination) + options
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + body


def ipv6(
    source: str,
    destination: str,
    body: bytes,
    *,
    ttl: int = 64,
    tos: int = 0,
    label: int = 0,
    extensions: tuple[Extension, ...] = (),
    protocol: int = UDP,
    ip_length: int | None = None,  # what follows the fixed header
) -> bytes:
    kinds = [*(kind for kind, _ in extensions), protocol]
    chain = b"".join(
        bytes([following]) + rest
        for following, (_, rest) in zip(kinds[1:], extensions, strict=True)
    )
    length = len(chain + body) if ip_length is None else ip_length
    header = struct.pack("!IHBB", 6 << 28 | tos << 20 | label, length, kinds[0], ttl)
    return header + packed(source) + packed(destination) + chain + body


def tagged(tags: tuple[int, ...], kinds: tuple[int, ...] = ()) -> bytes:
    """VLAN tags without the type that follows them; the last is a customer's, others a provider's,
    unless `kinds` says otherwise. A tag has its priority in the high 4 bits."""
    kinds = kinds or (SERVICE_TAG,) * (len(tags) - 1) + (CUSTOMER_TAG,)
    return b"".join(struct.pack("!HH", *tag) for tag in zip(kinds, tags, strict=False))


def frame(
    source: Address,
    destination: Address,
    payload: bytes,
    *,
    macs: tuple[bytes, bytes] = (RELAY_MAC, CLIENT_MAC),
    tags: tuple[int, ...] = (),
    tag_kinds: tuple[int, ...] = (),
    sum: int | None = None,  # UDP checksum; right unless given
    udp_length: int | None = None,
    padding: bytes = b"",
    **ip: Any,  # of ipv4() or ipv6()
) -> bytes:
    """A frame in the family of `source`; `macs` are destination and source."""
    udp = struct.pack(
        "!HHHH",
        source[1],
        destination[1],
        8 + len(payload) if udp_length is None else udp_length,
        udp_checksum(source, destination, payload) if sum is None else sum,
    )
    is_v6 = ":" in source[0]
    network = (ipv6 if is_v6 else ipv4)(source[0], destination[0], udp + payload, **ip)
    kind = b"\x86\xdd" if is_v6 else b"\x08\x00"
    return b"".join(macs) + tagged(tags, tag_kinds) + kind + network + padding


@dataclass(frozen=True)
class Datagram:
    """What a frame of plain IP and UDP carries."""

    macs: tuple[bytes, bytes]
    tags: tuple[int, ...]
    source: Address
    destination: Address
    ttl: int
    tos: int
    sum: int  # UDP checksum as it stands there
    payload: bytes


def take_apart(data: bytes) -> Datagram:
    """Read a frame and check its lengths, its IP checksum and, unless 0, its UDP checksum."""
    macs, tags, at = (data[:6], data[6:12]), [], 12
    while (kind := int.from_bytes(data[at : at + 2], "big")) in (CUSTOMER_TAG, SERVICE_TAG):
        tags.append(int.from_bytes(data[at + 2 : at + 4], "big"))
        at += 4
    ip = data[at + 2 :]
    if kind == 0x86DD:
        word, length, protocol, ttl = struct.unpack_from("!IHBB", ip)
        version, tos, addresses, udp = word >> 28, word >> 20 & 0xFF, ip[8:40], ip[40:]
    else:
        version, tos, total, ttl, protocol = struct.unpack_from("!BBH4xBB", ip)
        length, addresses, udp = total - 20, ip[12:20], ip[20:]
        assert (kind, checksum(ip[:20])) == (0x0800, 0), "IP header checksum"
    assert (version, protocol) == (6 if kind == 0x86DD else 0x45, UDP)
    source_port, destination_port, udp_length, sum = struct.unpack_from("!HHHH", udp)
    assert udp_length == length <= len(udp)
    family = socket.AF_INET6 if kind == 0x86DD else socket.AF_INET
    half = len(addresses) // 2
    source = socket.inet_ntop(family, addresses[:half]), source_port
    destination = socket.inet_ntop(family, addresses[half:]), destination_port
    payload = udp[8:length]
    if sum:
        assert sum == udp_checksum(source, destination, payload), "UDP checksum"
    return Datagram(macs, tuple(tags), source, destination, ttl, tos, sum, payload)


def spp_header(client: Address, proxy: Address) -> bytes:
    def wide(host: str) -> bytes:
        return packed(host) if ":" in host else bytes(10) + b"\xff\xff" + packed(host)

    ports = struct.pack("!HH", client[1], proxy[1])
    return b"\x56\xec" + wide(client[0]) + wide(proxy[0]) + ports


def attribute(kind: int, value: bytes) -> bytes:
    """A STUN attribute with its padding, RFC 8489 section 14."""
    return struct.pack("!HH", kind, len(value)) + value + bytes(-len(value) % 4)


def stun(
    kind: int = 0x0001, *, attributes: bytes = b"", cookie: int = COOKIE, length: int | None = None
) -> bytes:
    size = len(attributes) if length is None else length
    return struct.pack("!HHI12s", kind, size, cookie, b"transaction!") + attributes


USERNAME, PRIORITY, MESSAGE_INTEGRITY = 0x0006, 0x0024, 0x0008
MESSAGE_INTEGRITY_SHA256, FINGERPRINT = 0x001C, 0x8028


def request(token: str, *, before: bytes = b"") -> bytes:
    """The Binding request of an ICE agent whose peer gave `token` as its ufrag."""
    username = attribute(USERNAME, token.encode() + b":WvQ1")
    signed = attribute(PRIORITY, bytes(4)) + attribute(MESSAGE_INTEGRITY, bytes(20))
    return stun(attributes=before + username + signed + attribute(FINGERPRINT, bytes(4)))


def rtp(ssrc: int, *, kind: int = 111, payload: bytes = b"opus") -> bytes:
    return struct.pack("!BBHII", 0x80, kind, 7, 960, ssrc) + payload


DTLS = bytes.fromhex("16fefd0000000000000000") + b"client hello"
