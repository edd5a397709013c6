"""Addresses of the rig and the frames that the generator makes many of. Pure.

gen (clients) gen0 ---- outer0 relay inner0 ---- sink0 sink (endpoint)
"""

import socket
import struct
from dataclasses import dataclass
from typing import Literal

from relayctl.wire import spp
from relayctl.wire.address import Address

Family = Literal[4, 6]
FAMILIES: tuple[Family, ...] = (4, 6)

MACS = {
    "gen0": bytes.fromhex("020000000301"),
    "outer0": bytes.fromhex("020000000302"),
    "inner0": bytes.fromhex("020000000201"),
    "sink0": bytes.fromhex("020000000202"),
}
HOSTS: dict[Family, dict[str, str]] = {
    4: {"gen0": "10.3.0.1", "outer0": "10.3.0.2", "inner0": "10.2.0.1", "sink0": "10.2.0.2"},
    6: {
        "gen0": "2001:db8:3::1",
        "outer0": "2001:db8:3::2",
        "inner0": "2001:db8:2::1",
        "sink0": "2001:db8:2::2",
    },
}
VIP: dict[Family, Address] = {4: ("203.0.113.10", 3478), 6: ("2001:db8:feed::10", 3478)}
ENDPOINT_PORT = 5000
SPORT = spp.PORT_BASE + 7  # the relay's on the inner leg; any of its range will do
CLIENT_PREFIX = bytes.fromhex("20010db8000c00000000")  # of IPv6 clients, first 10 bytes
FIRST_CLIENT = 0x64400100  # 100.64.1.0, and the low 32 bits of IPv6 clients
CLIENTS_PER_HOST = 4
FIRST_CLIENT_PORT = 20000
PAYLOAD = 110  # bytes: 20 ms of Opus at 32 kb/s, RTP header and SRTP tag included
STAMP = 12  # offset in the payload: behind an RTP header, inside a STUN transaction id

_ETHERNET, _UDP = 14, 8
_IP: dict[Family, int] = {4: 20, 6: 40}
_ETHERTYPE: dict[Family, bytes] = {4: b"\x08\x00", 6: b"\x86\xdd"}


@dataclass(frozen=True)
class Frame:
    """A frame whose client is still 0; offsets in the whole frame say where it goes."""

    data: bytes
    head: int  # bytes to write anew each time
    client_at: int  # 4 bytes
    port_at: int
    sum_at: int  # UDP checksum
    ip_sum_at: int  # IPv4 header checksum if the client counts in it, else 0
    stamp_at: int
    sum: int  # of words in memory order: UDP datagram and pseudo header, client and sum 0
    ip_sum: int  # the same for the IPv4 header


def client(number: int, family: Family) -> Address:
    """The address of client `number`, as the generator makes it."""
    low = (FIRST_CLIENT + number // CLIENTS_PER_HOST).to_bytes(4, "big")
    port = FIRST_CLIENT_PORT + number % CLIENTS_PER_HOST
    if family == 4:
        return socket.inet_ntoa(low), port
    return socket.inet_ntop(socket.AF_INET6, CLIENT_PREFIX + b"\0\0" + low), port


def number_of(host: bytes, port: bytes) -> int:
    """The inverse of `client`, of the low 4 bytes of the address and the 2 of the port."""
    low = int.from_bytes(host, "big") - FIRST_CLIENT
    return low * CLIENTS_PER_HOST + int.from_bytes(port, "big") - FIRST_CLIENT_PORT


def rtp(size: int = PAYLOAD) -> bytes:
    """Payload of an RTP packet; the stamp's place is 0."""
    head = struct.pack("!BBHII", 0x80, 111, 7, 960, 0xFE441)
    return (head + bytes(8)).ljust(size, b"\x5a")


def channel_data(payload: bytes, channel: int = 0x4000) -> bytes:
    """TURN ChannelData around `payload` (RFC 8656 section 12.4)."""
    return struct.pack("!HH", channel, len(payload)) + payload


def from_client(
    family: Family, payload: bytes, to: Address | None = None, stamp: int = STAMP
) -> Frame:
    """Client 0 to the VIP, or `to`. `stamp` is its offset in the payload."""
    destination = to or VIP[family]
    source = (_unnumbered(family), 0)
    macs = MACS["outer0"], MACS["gen0"]
    at = _ETHERNET + (12 if family == 4 else 8 + 12)  # the low 4 bytes of the source
    return _frame(family, macs, source, destination, payload, client_at=at, ports=0, stamp=stamp)


def from_endpoint(outer: Family, inner: Family, payload: bytes) -> Frame:
    """The endpoint to the relay, about client 0 of family `outer`, in an SPP header."""
    client_host = _mapped(outer, _unnumbered(outer))
    header = b"\x56\xec" + client_host + _mapped(outer, VIP[outer][0])
    header += struct.pack("!HH", 0, VIP[outer][1])
    source = (HOSTS[inner]["sink0"], ENDPOINT_PORT)
    destination = (HOSTS[inner]["inner0"], SPORT)
    begin = _ETHERNET + _IP[inner] + _UDP
    macs = MACS["inner0"], MACS["sink0"]
    return _frame(
        *(inner, macs, source, destination, header + payload),
        client_at=begin + 2 + 12,
        port_at=begin + 34,
        head=begin + len(header),
        stamp=len(header) + STAMP,
    )


def from_plain_endpoint(family: Family, payload: bytes) -> Frame:
    """The endpoint straight to client 0, as in the transparent mode."""
    source = (HOSTS[family]["sink0"], ENDPOINT_PORT)
    at = _ETHERNET + (16 if family == 4 else 8 + 16 + 12)
    macs = MACS["inner0"], MACS["sink0"]
    destination = (_unnumbered(family), 0)
    return _frame(family, macs, source, destination, payload, client_at=at, ports=2, stamp=STAMP)


def finished(frame: Frame, number: int, family: Family, stamp: int = 0) -> bytes:
    """`frame` about client `number`, as the generator sends it."""
    host, port = client(number, family)
    low, packed_port = _packed(family, host)[-4:], struct.pack("!H", port)
    time = struct.pack("<Q", stamp)
    total = frame.sum + words(low) + words(packed_port) + words(time)
    check = ~fold(total) & 0xFFFF or 0xFFFF
    data = bytearray(frame.data)
    data[frame.client_at : frame.client_at + 4] = low
    data[frame.port_at : frame.port_at + 2] = packed_port
    data[frame.stamp_at : frame.stamp_at + 8] = time
    data[frame.sum_at : frame.sum_at + 2] = struct.pack("<H", check)
    if frame.ip_sum_at:
        ip = struct.pack("<H", ~fold(frame.ip_sum + words(low)) & 0xFFFF)
        data[frame.ip_sum_at : frame.ip_sum_at + 2] = ip
    return bytes(data)


def words(data: bytes) -> int:
    """Sum of 16-bit words in memory order of this (little-endian) machine, not folded."""
    return sum(word for (word,) in struct.iter_unpack("<H", data + bytes(len(data) % 2)))


def fold(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _frame(
    family: Family,
    macs: tuple[bytes, bytes],
    source: Address,
    destination: Address,
    payload: bytes,
    *,
    client_at: int,
    stamp: int,
    ports: int = 0,
    port_at: int | None = None,
    head: int | None = None,
) -> Frame:
    length = _UDP + len(payload)
    udp = struct.pack("!HHHH", source[1], destination[1], length, 0)
    addresses = _packed(family, source[0]) + _packed(family, destination[0])
    if family == 4:
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, 17, 0) + addresses
        client_counts = client_at < _ETHERNET + 20
        ip_sum = words(ip)
        if not client_counts:
            ip = ip[:10] + (~fold(ip_sum) & 0xFFFF).to_bytes(2, "little") + ip[12:]
    else:
        ip = struct.pack("!IHBB", 6 << 28, length, 17, 64) + addresses
        client_counts, ip_sum = False, 0
    udp_at = _ETHERNET + _IP[family]
    pseudo = addresses + struct.pack("!HH", length, 17)
    return Frame(
        data=b"".join(macs) + _ETHERTYPE[family] + ip + udp + payload,
        head=udp_at + _UDP if head is None else head,
        client_at=client_at,
        port_at=udp_at + ports if port_at is None else port_at,
        sum_at=udp_at + 6,
        ip_sum_at=_ETHERNET + 10 if client_counts else 0,
        stamp_at=udp_at + _UDP + stamp,
        sum=words(pseudo) + words(udp) + words(payload),
        ip_sum=ip_sum,
    )


def _unnumbered(family: Family) -> str:
    """A client's address with its low 32 bits 0."""
    if family == 4:
        return "0.0.0.0"
    return socket.inet_ntop(socket.AF_INET6, CLIENT_PREFIX + bytes(6))


def _packed(family: Family, host: str) -> bytes:
    return socket.inet_pton(socket.AF_INET if family == 4 else socket.AF_INET6, host)


def _mapped(family: Family, host: str) -> bytes:
    packed = _packed(family, host)
    return packed if family == 6 else bytes(10) + b"\xff\xff" + packed
