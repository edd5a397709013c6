"""Build an IP datagram in somebody else's name: transparent mode's first packets.

Pure. The kernel's sockets send from our own addresses only, so headers and checksums are made here
(RFC 791, RFC 8200, RFC 768).
"""

import struct

from relayctl.wire.address import Address, compact

UDP = 17
HOP_LIMIT = 64

_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_IPV6 = struct.Struct("!IHBB16s16s")
_PORTS = struct.Struct("!HHHH")  # source, destination, length, checksum


def build(client: Address, endpoint: Address, payload: bytes) -> bytes:
    """An IP datagram with UDP in it, from `client` to `endpoint`, which are of one family."""
    source, destination = compact(client[0]), compact(endpoint[0])
    length = _PORTS.size + len(payload)
    # the words that both families' pseudo-headers add up to are the same
    pseudo = source + destination + struct.pack("!HH", UDP, length)
    unsummed = _PORTS.pack(client[1], endpoint[1], length, 0) + payload
    checksum = ones_complement(pseudo + unsummed) or 0xFFFF  # 0 would say that there is none
    udp = _PORTS.pack(client[1], endpoint[1], length, checksum) + payload
    return _header(source, destination, length) + udp


def _header(source: bytes, destination: bytes, length: int) -> bytes:
    if len(source) == 16:
        return _IPV6.pack(6 << 28, length, UDP, HOP_LIMIT, source, destination)
    fields = 0x45, 0, _IPV4.size + length, 0, 0, HOP_LIMIT, UDP
    checksum = ones_complement(_IPV4.pack(*fields, 0, source, destination))
    return _IPV4.pack(*fields, checksum, source, destination)


def ones_complement(data: bytes) -> int:
    """The Internet checksum, RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    # 2**16 is 1 modulo 0xffff, so the number itself has the remainder of the sum of its words
    total = int.from_bytes(data, "big") % 0xFFFF
    return 0xFFFF - total if total or not any(data) else 0
