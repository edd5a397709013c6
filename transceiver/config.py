"""The transceiver's configuration: its TOML file, each key checked.

Pure: values in, one frozen value or `SettingsError` out. What the host has (key file, free ports)
is looked at by `server.py`.
"""

import ipaddress
from pathlib import Path
from typing import Annotated, Literal

import pydantic

from relayctl.wire.cluster import IPV4_PREFIX, Network
from relayctl.wire.settings import Endpoint, Settings
from transceiver.backends.echo import Mode

ENVIRONMENT = "FERRYLINE_TRANSCEIVER_"  # prefix of the variables that override the file

MIN_TOKEN = 16  # characters


def _to_network(value: object) -> object:
    try:
        return ipaddress.ip_network(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("is no network; want an address and a length: '10.2.0.0/24'") from None


def _to_prefix(value: object) -> object:
    prefix = _to_network(value)
    if not isinstance(prefix, ipaddress.IPv6Network) or prefix.prefixlen != 96:
        raise ValueError("want an IPv6 network of 96 bits; '::ffff:0:0/96' stands for IPv4")
    return prefix


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError(f"is relative; write the whole path, such as '/{path}'")
    return path


RelayNetwork = Annotated[Network, pydantic.BeforeValidator(_to_network)]
Prefix = Annotated[ipaddress.IPv6Network, pydantic.BeforeValidator(_to_prefix)]
Seconds = Annotated[float, pydantic.Field(gt=0, le=3600)]


class EchoSection(Settings):
    """Backend `echo`. `audio` decodes and encodes; `opus` mirrors packets, to measure transport."""

    mode: Mode = Mode.AUDIO


class TransceiverConfig(Settings):
    """Everything `transceiver serve` can be told."""

    listen: Endpoint
    inner: Literal["spp", "plain"] = "spp"
    relay_networks: tuple[RelayNetwork, ...] = ()
    cluster: Annotated[int, pydantic.Field(ge=0, le=65535)]
    cluster_prefix: Prefix = IPV4_PREFIX
    keys_file: Annotated[Path, pydantic.AfterValidator(_absolute)]
    mint: Annotated[int, pydantic.Field(ge=0, le=31)]
    control_token: str = ""
    capacity: Annotated[int, pydantic.Field(ge=1, le=100_000)] = 30
    backend: Literal["echo"] = "echo"
    echo: EchoSection = EchoSection()
    away_after_s: Seconds = 10.0
    consent_s: Seconds = 30.0
    setup_s: Seconds = 15.0

    @pydantic.model_validator(mode="after")
    def _fits_together(self) -> "TransceiverConfig":
        host = ipaddress.ip_address(self.listen[0])
        if host.is_unspecified:
            raise ValueError(
                f"listen = '{host}': route tokens carry it, so write the inner address itself"
            )
        if self.inner == "spp" and not self.relay_networks:
            raise ValueError("relay_networks: empty; name the relays' inner addresses for 'spp'")
        if not self.control_token and not host.is_loopback:
            raise ValueError(
                f"control_token: missing; {host} is no loopback address, so anybody who reaches it "
                "could make calls"
            )
        if self.control_token and len(self.control_token) < MIN_TOKEN:
            raise ValueError(f"control_token: too short; want at least {MIN_TOKEN} characters")
        if self.consent_s < self.away_after_s:
            raise ValueError(
                f"consent_s = {self.consent_s}: less than away_after_s = {self.away_after_s}"
            )
        return self
