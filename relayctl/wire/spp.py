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

from relayctl.wire.address import Address, is_v6, pack_host, unpack_host

MAGIC = b"\x56\xec"
HEADER_SIZE = 38  # bytes
PORT_BASE = 5100  # default first inner source port: below the local port range
PORT_COUNT = 16

_WORDS = struct.Struct("!4I")


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


@functools.lru_cache(maxsize=65536)
def encode(header: Header) -> bytes:
    (client, client_port), (proxy, proxy_port) = header.client, header.proxy
    return (
        MAGIC
        + pack_host(client)
        + pack_host(proxy)
        + client_port.to_bytes(2, "big")
        + proxy_port.to_bytes(2, "big")
    )


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


def inner_port(client: Address, base: int = PORT_BASE, count: int = PORT_COUNT) -> int:
    """Our source port on the inner leg: spreads clients over the receive queues of an endpoint.

    `count` is a power of two. The XDP program does not compute it; the flow stores it.
    """
    host, port = client
    first, second, third, fourth = _WORDS.unpack(pack_host(host))
    x: int = first ^ second ^ third ^ fourth ^ port
    return base + ((x ^ x >> 16 ^ x >> 8) & (count - 1))
