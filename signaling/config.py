"""Signaling's configuration: the sections of its TOML file, each key checked.

Pure: values in, one frozen value or `SettingsError` out.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pydantic

from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.cluster import Clusters, Network
from relayctl.wire.fields import AbsolutePath, IpNetwork, RedisUrl
from relayctl.wire.settings import Settings
from signaling.access import config as access_config
from signaling.access.config import AccessMode, ApiKeySection, LimitsSection
from signaling.fleet.config import (
    ClusterPlaceSection,
    IngressSection,
    PlaceSection,
    TransceiverSection,
)
from signaling.fleet.location import Place
from signaling.ice_servers import IceServers

ENVIRONMENT = "FERRYLINE_SIGNALING_"  # prefix of the variables that override the file

_INHERITED = re.compile(r"fd:(\d{1,4})")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def _to_listen(value: object) -> object:
    if isinstance(value, str) and (match := _INHERITED.fullmatch(value)):
        return int(match[1])
    if isinstance(value, str):
        return address.parse(value)
    raise ValueError("want '<ip>:<port>', or 'fd:<number>' of an inherited listening socket")


Listen = Annotated[Address | int, pydantic.BeforeValidator(_to_listen)]


class TlsSection(Settings):
    """Certificate chain and private key, both PEM files."""

    cert: AbsolutePath
    key: AbsolutePath


class SignalingConfig(Settings):
    """Everything `signaling serve` needs. Sections keep their TOML names in the singular."""

    listen: Listen = ("127.0.0.1", 8080)
    keys_file: AbsolutePath
    control_token: str = pydantic.Field(default="", repr=False)
    redis: RedisUrl | None = pydantic.Field(default=None, repr=False)
    access: AccessMode | None = None
    api_keys: Annotated[
        tuple[ApiKeySection, ...], pydantic.Field(alias="api_key", max_length=1000, repr=False)
    ] = ()
    allow_client_hangup: bool | None = None
    limits: LimitsSection = LimitsSection()
    cors_origins: tuple[str, ...] = ("*",)
    tls: TlsSection | None = None
    tls_self_signed: tuple[str, ...] = ()
    state_dir: AbsolutePath = Path("/var/lib/ferryline")  # of the self-signed certificate
    transceivers: Annotated[
        tuple[TransceiverSection, ...], pydantic.Field(alias="transceiver")
    ] = ()
    ingresses: Annotated[tuple[IngressSection, ...], pydantic.Field(alias="ingress")] = ()
    clusters: Annotated[
        tuple[ClusterPlaceSection, ...], pydantic.Field(alias="cluster", min_length=1)
    ]
    ice_servers: Annotated[IceServers, pydantic.Field(alias="ice_server", max_length=16)] = ()
    geoip: AbsolutePath | None = None
    trusted_proxies: tuple[IpNetwork, ...] = ()
    default_location: PlaceSection = PlaceSection()

    @pydantic.field_validator("trusted_proxies")
    @classmethod
    def _are_not_everybody(cls, value: tuple[Network, ...]) -> tuple[Network, ...]:
        for network in value:
            if network.prefixlen == 0:
                raise ValueError(
                    f"'{network}' trusts every client to name its own address; "
                    "give the addresses of your proxies"
                )
        return value

    @pydantic.field_validator("control_token")
    @classmethod
    def _is_header_text(cls, value: str) -> str:
        if not re.fullmatch(r"[\x21-\x7e]*", value):
            raise ValueError("goes into a header; use visible ASCII without blanks")
        return value

    @pydantic.field_validator("tls_self_signed")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            if not is_ip(host) and not _HOST_NAME.fullmatch(host):
                raise ValueError(f"{host!r} is no host name and no IP address")
        return value

    @pydantic.model_validator(mode="after")
    def _agrees(self) -> "SignalingConfig":
        faults = list(_faults(self))
        if faults:
            raise ValueError("\n".join(faults))
        return self

    @property
    def endpoints(self) -> tuple[Address, ...]:
        """Of all transceivers."""
        return tuple(each for section in self.transceivers for each in section.endpoints)

    def routing(self) -> Clusters:
        return Clusters(section.cluster() for section in self.clusters)

    @property
    def places(self) -> dict[int, Place]:
        """Where the clusters stand, by their ids."""
        return {section.id: section.place for section in self.clusters}

    @property
    def regions(self) -> frozenset[str]:
        """The names that something here bears."""
        placed = (*self.clusters, *self.ingresses)
        return frozenset(section.region for section in placed if section.region is not None)

    @property
    def tls_files(self) -> TlsSection | None:
        """The certificate to serve: the given one, else where the self-signed one is kept."""
        if self.tls or not self.tls_self_signed:
            return self.tls
        return TlsSection(
            cert=self.state_dir / "signaling.crt", key=self.state_dir / "signaling.key"
        )


def is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _faults(config: SignalingConfig) -> Iterator[str]:
    """Rules about more than one key: one line for each breach."""
    if config.tls and config.tls_self_signed:
        yield "tls_self_signed: makes a certificate, and [tls] gives one; keep one of them"
    for section in config.transceivers:
        host = ipaddress.ip_address(section.endpoint[0])
        if not config.control_token and not host.is_loopback:
            yield f"control_token: missing; {host} takes no call without its transceiver's secret"
            break
    for key, values in (
        ("transceiver.endpoint", [address.render(each) for each in config.endpoints]),
        ("ingress.name", [section.name for section in config.ingresses]),
        ("cluster.id", [str(section.id) for section in config.clusters]),
    ):
        for value, count in Counter(values).items():
            if count > 1:
                yield f"{key} = {value!r}: stands {count} times; keep one"
    yield from access_config.faults(config, config.listen)
    known = {section.id for section in config.clusters}
    for ingress in config.ingresses:
        for unknown in sorted(set(ingress.clusters) - known):
            yield (
                f"ingress.clusters = {unknown}: of ingress {ingress.name!r}, is no [[cluster]]; "
                "add one of this id, or take it out"
            )
    clusters = config.routing()
    for endpoint in config.endpoints:
        if clusters.owner(endpoint) is None:
            yield (
                f"transceiver.endpoint = {address.render(endpoint)!r}: is in no cluster; "
                "add its network to that cluster's `allow`, its port to `ports`"
            )
