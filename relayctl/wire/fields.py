"""Fields and sections that more than one service's configuration has."""

import ipaddress
from pathlib import Path
from typing import Annotated

import pydantic

from relayctl.wire import redis_url
from relayctl.wire.cluster import IPV4_PREFIX, Cluster, Network
from relayctl.wire.settings import Settings


def _to_network(value: object) -> object:
    if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
        return value
    if not isinstance(value, str):
        raise ValueError("want a network as text, such as '10.2.0.0/24'")
    try:
        return ipaddress.ip_network(value)
    except ValueError:
        pass
    try:
        mend = f"write '{ipaddress.ip_network(value, strict=False)}'"
    except ValueError:
        mend = "want an address and a prefix length, such as '10.2.0.0/24'"
    raise ValueError(f"is no network; {mend}")


def _to_prefix(value: object) -> object:
    prefix = _to_network(value)
    if not isinstance(prefix, ipaddress.IPv6Network) or prefix.prefixlen != 96:
        raise ValueError(f"has to be an IPv6 /96; for IPv4 write '{IPV4_PREFIX}'")
    return prefix


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError(f"is relative; write the whole path, such as '/{path}'")
    return path


def _redis_url(value: str) -> str:
    redis_url.parse(value)
    return value


AbsolutePath = Annotated[Path, pydantic.AfterValidator(_absolute)]
IpNetwork = Annotated[Network, pydantic.BeforeValidator(_to_network)]
Prefix = Annotated[ipaddress.IPv6Network, pydantic.BeforeValidator(_to_prefix)]
"""The 96 bits of a cluster's prefix."""
RedisUrl = Annotated[str, pydantic.AfterValidator(_redis_url)]
"""May hold a password: keep it out of `repr`, logs and errors."""


class ClusterSection(Settings):
    """Transceivers that tokens of one cluster id may lead to. The allow-list has no default."""

    id: int
    allow: tuple[IpNetwork, ...]
    prefix: Prefix = IPV4_PREFIX
    ports: tuple[int, int] = (1024, 65535)  # first and last

    @pydantic.field_validator("id")
    @classmethod
    def _fits_token(cls, value: int) -> int:
        if not 0 <= value <= 65535:
            raise ValueError("is outside 0-65535; choose one of these")
        return value

    @pydantic.field_validator("allow")
    @classmethod
    def _allows_something(cls, value: tuple[Network, ...]) -> tuple[Network, ...]:
        if not value:
            raise ValueError("allows nothing; list the transceivers' networks")
        return value

    @pydantic.field_validator("ports")
    @classmethod
    def _is_range(cls, value: tuple[int, int]) -> tuple[int, int]:
        if not 1 <= value[0] <= value[1] <= 65535:
            raise ValueError("want [first, last] with 1 <= first <= last <= 65535")
        return value

    def cluster(self) -> Cluster:
        return Cluster(id=self.id, allow=self.allow, prefix=self.prefix, ports=self.ports)
