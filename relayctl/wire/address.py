"""IP addresses with a port: as text in configuration, as bytes on the wire."""

import functools
import ipaddress

Address = tuple[str, int]
"""Canonical IP text (an IPv4-mapped address is written as IPv4) and port."""

MAPPED = bytes(10) + b"\xff\xff"  # the prefix of IPv4-mapped addresses

V4_SIZE, V6_SIZE = 6, 18  # bytes of a packed address

_DOTTED = "%d.%d.%d.%d"


class AddressError(ValueError):
    """The text is no `<ip>:<port>`."""


def parse(text: str) -> Address:
    """Read `203.0.113.10:3478` or `[2001:db8::1]:3478`. Raises `AddressError`."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise AddressError(f"{text!r} is no address: want <ip>:<port> with a port of 1-65535")
    try:
        ip = ipaddress.ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        raise AddressError(f"{text!r} is no address: {host!r} is no IP address") from None
    if (ip.version == 6) != bracketed:
        raise AddressError(f"{text!r} is no address: write IPv6 in brackets, IPv4 without")
    return unpack_host(pack_host(str(ip))), int(port)


def render(address: Address) -> str:
    """The inverse of `parse`."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@functools.lru_cache(maxsize=65536)
def pack_host(host: str) -> bytes:
    """16 bytes, IPv4 as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2). Raises `ValueError`."""
    if is_v6(host):
        return ipaddress.IPv6Address(host).packed
    try:
        packed = bytes(map(int, host.split(".")))
        if _DOTTED % tuple(packed) == host:  # a tenth of the cost of what comes below
            return MAPPED + packed
    except (ValueError, TypeError):
        pass
    return MAPPED + ipaddress.IPv4Address(host).packed


@functools.lru_cache(maxsize=65536)
def unpack_host(packed: bytes) -> str:
    """Text of 16 bytes; an IPv4-mapped address becomes IPv4 again."""
    if packed.startswith(MAPPED):
        return _DOTTED % tuple(packed[12:])
    return str(ipaddress.IPv6Address(packed))


def is_v6(host: str) -> bool:
    """Which family a canonical address is of."""
    return ":" in host


def compact(host: str) -> bytes:
    """4 bytes of an IPv4 address, 16 of an IPv6 one. Raises `ValueError`."""
    packed = pack_host(host)
    return packed if is_v6(host) else packed[12:]


def widened(packed: bytes) -> bytes:
    """A compact host or a packed address as IPv6, IPv4 as a mapped one: 16 bytes, or 18."""
    return packed if len(packed) >= 16 else MAPPED + packed


@functools.lru_cache(maxsize=65536)
def pack(address: Address) -> bytes:
    """An address as machines pass it on: the compact host and the port in network order."""
    host, port = address
    return compact(host) + port.to_bytes(2, "big")


@functools.lru_cache(maxsize=65536)
def unpack(packed: bytes) -> Address:
    """The inverse of `pack`."""
    return unpack_host(widened(packed[:-2])), int.from_bytes(packed[-2:], "big")
