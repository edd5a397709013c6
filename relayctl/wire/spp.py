"""Simple Proxy Protocol: the 38 bytes before every inner datagram, in both directions.

    magic 56 EC | client address 16 | proxy address 16 | client port 2 | proxy port 2

Addresses are IPv6, IPv4 as mapped ones; everything is in network order. The proxy is the public
VIP. A reply carries the request's header back, and the relay strips it. The format is that of
Cloudflare Spectrum's "Simple Proxy Protocol for UDP".
"""

import enum
import functools
import struct
from typing import NamedTuple

from relayctl.wire.address import Address, is_v6, pack, unpack_host, widened

MAGIC = b"\x56\xec"
HEADER_SIZE = 38  # bytes
PORT_BASE = 5100  # default first inner source port: below the local port range
PORT_COUNT = 16

_WORDS = struct.Struct("!4IH")  # of a client: address and port


class Reject(enum.StrEnum):
    """Why a datagram is no inner one."""

    TRUNCATED = "truncated"
    NOT_SPP = "not_spp"


class SppError(ValueError):
    def __init__(self, reason: Reject, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class Header(NamedTuple):
    client: Address
    proxy: Address

    @property
    def is_of_one_family(self) -> bool:
        """Whether client and proxy are both IPv4 (mapped on the wire) or both IPv6: the client
        sent to that VIP, so anything else is made up."""
        return is_v6(self.client[0]) == is_v6(self.proxy[0])


def encode(header: Header) -> bytes:
    return encode_packed(pack(header.client), pack(header.proxy))


def encode_packed(client: bytes, proxy: bytes) -> bytes:
    """The header between two packed addresses."""
    return MAGIC + widened(client[:-2]) + widened(proxy[:-2]) + client[-2:] + proxy[-2:]


@functools.lru_cache(maxsize=65536)
def decode(header: bytes) -> Header:
    """Read exactly the header. Raises `SppError`."""
    if len(header) != HEADER_SIZE:
        raise SppError(Reject.TRUNCATED, f"{len(header)} bytes, want {HEADER_SIZE}")
    if header[:2] != MAGIC:
        raise SppError(Reject.NOT_SPP, f"magic {header[:2].hex()}, want {MAGIC.hex()}")
    client = unpack_host(header[2:18]), int.from_bytes(header[34:36], "big")
    proxy = unpack_host(header[18:34]), int.from_bytes(header[36:38], "big")
    return Header(client, proxy)


def split(datagram: bytes) -> tuple[bytes, bytes]:
    """Header bytes and payload (at least one byte) of an inner datagram. Raises `SppError`."""
    if datagram[:2] != MAGIC:
        raise SppError(Reject.NOT_SPP, f"magic {datagram[:2].hex()}, want {MAGIC.hex()}")
    if len(datagram) <= HEADER_SIZE:
        raise SppError(Reject.TRUNCATED, f"{len(datagram)} bytes, want more than {HEADER_SIZE}")
    return datagram[:HEADER_SIZE], datagram[HEADER_SIZE:]


def inner_port(client: bytes, base: int = PORT_BASE, count: int = PORT_COUNT) -> int:
    """Our source port on the inner leg for a packed client: spreads clients over the receive queues
    of an endpoint.

    `count` is a power of two. The XDP program does not compute it; the flow stores it.
    """
    first, second, third, fourth, port = _WORDS.unpack(widened(client))
    x: int = first ^ second ^ third ^ fourth ^ port
    return base + ((x ^ x >> 16 ^ x >> 8) & (count - 1))
