"""Ethernet frames with IPv4 and UDP, built and taken apart by the book: the reference that the
program's rewriting is compared with. Nothing here is shared with the product."""

import socket
import struct
from dataclasses import dataclass

Address = tuple[str, int]

CLIENT_MAC = bytes.fromhex("02000000000a")
RELAY_MAC = bytes.fromhex("02000000000b")
COOKIE = 0x2112A442


def checksum(data: bytes) -> int:
    """RFC 1071, one word after the other, carry by carry."""
    total = 0
    for (word,) in struct.iter_unpack("!H", data + bytes(len(data) % 2)):
        total += word
        if total > 0xFFFF:
            total -= 0xFFFF
    return total ^ 0xFFFF


def udp_checksum(source: Address, destination: Address, payload: bytes) -> int:
    """As it stands in a header: never 0 (RFC 768)."""
    header = struct.pack("!HHHH", source[1], destination[1], 8 + len(payload), 0)
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(destination[0])
    pseudo = addresses + struct.pack("!BBH", 0, 17, 8 + len(payload))
    return checksum(pseudo + header + payload) or 0xFFFF


def frame(
    source: Address,
    destination: Address,
    payload: bytes,
    *,
    macs: tuple[bytes, bytes] = (RELAY_MAC, CLIENT_MAC),
    ttl: int = 64,
    tos: int = 0,
    id: int = 0,
    fragment: int = 0x4000,  # flags and offset
    options: bytes = b"",
    protocol: int = 17,
    sum: int | None = None,  # UDP checksum; right unless given
    udp_length: int | None = None,
    ip_length: int | None = None,
    padding: bytes = b"",
) -> bytes:
    """A frame; `macs` are destination and source."""
    udp = struct.pack(
        "!HHHH",
        source[1],
        destination[1],
        8 + len(payload) if udp_length is None else udp_length,
        udp_checksum(source, destination, payload) if sum is None else sum,
    )
    header = struct.pack(
        "!BBHHHBBH4s4s",
        0x45 + len(options) // 4,
        tos,
        20 + len(options) + 8 + len(payload) if ip_length is None else ip_length,
        id,
        fragment,
        ttl,
        protocol,
        0,
        socket.inet_aton(source[0]),
        socket.inet_aton(destination[0]),
    )
    header += options
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return b"".join(macs) + b"\x08\x00" + header + udp + payload + padding


@dataclass(frozen=True)
class Datagram:
    """What a frame of plain IPv4 and UDP carries."""

    macs: tuple[bytes, bytes]
    source: Address
    destination: Address
    ttl: int
    tos: int
    sum: int  # UDP checksum as it stands there
    payload: bytes


def take_apart(data: bytes) -> Datagram:
    """Read a frame and check its IP and, unless 0, its UDP checksum."""
    header, udp = data[14:34], data[34:42]
    kind, tos, length, _, _, ttl, protocol, _, source, destination = struct.unpack(
        "!BBHHHBBH4s4s", header
    )
    assert (data[12:14], kind, protocol) == (b"\x08\x00", 0x45, 17)
    assert checksum(header) == 0, "IP header checksum"
    sport, dport, udp_length, sum = struct.unpack("!HHHH", udp)
    assert udp_length == length - 20
    payload = data[42 : 14 + length]
    found_source = (socket.inet_ntoa(source), sport)
    found_destination = (socket.inet_ntoa(destination), dport)
    if sum:
        assert sum == udp_checksum(found_source, found_destination, payload), "UDP checksum"
    return Datagram((data[:6], data[6:12]), found_source, found_destination, ttl, tos, sum, payload)


def spp_header(client: Address, proxy: Address) -> bytes:
    def mapped(host: str) -> bytes:
        return bytes(10) + b"\xff\xff" + socket.inet_aton(host)

    ports = struct.pack("!HH", client[1], proxy[1])
    return b"\x56\xec" + mapped(client[0]) + mapped(proxy[0]) + ports


def stun(
    kind: int = 0x0001, *, attributes: bytes = b"", cookie: int = COOKIE, length: int | None = None
) -> bytes:
    size = len(attributes) if length is None else length
    return struct.pack("!HHI12s", kind, size, cookie, b"transaction!") + attributes


def rtp(ssrc: int, *, kind: int = 111, payload: bytes = b"opus") -> bytes:
    return struct.pack("!BBHII", 0x80, kind, 7, 960, ssrc) + payload


DTLS = bytes.fromhex("16fefd0000000000000000") + b"client hello"
