"""Client addresses as they may stand in a log: the network, not the host. Pure."""

import functools
import ipaddress

IPV4_BITS = 24
IPV6_BITS = 48


@functools.lru_cache(maxsize=4096)
def mask(host: str) -> str:
    """`203.0.113.10` becomes `203.0.113.0/24`, IPv6 its /48."""
    bits = IPV6_BITS if ":" in host else IPV4_BITS
    return str(ipaddress.ip_network((host, bits), strict=False))
