"""IP addresses with a port: as text in configuration, as bytes on the wire."""

import functools
import ipaddress

Address = tuple[str, int]
"""Canonical IP text (an IPv4-mapped address is written as IPv4) and port."""

MAPPED = bytes(10) + b"\xff\xff"  # the prefix of IPv4-mapped addresses

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


def canonical(host: str) -> str:
    """A socket's text of an IPv6 address as ours: without its scope, and mapped IPv4 as IPv4.

    Else the C library spells addresses as RFC 5952 says, like `unpack_host`."""
    if "." not in host and "%" not in host:
        return host
    return unpack_host(pack_host(host.partition("%")[0]))
