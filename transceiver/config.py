"""The transceiver's configuration: its TOML file, each key checked.

Pure: values in, one frozen value or `SettingsError` out. What the host has (key file, free ports)
is looked at by `server.py`.
"""

import ipaddress
from typing import Annotated, Literal

import pydantic

from relayctl.wire.address import Address
from relayctl.wire.cluster import IPV4_PREFIX
from relayctl.wire.fields import AbsolutePath, IpNetwork, Prefix, RedisUrl
from relayctl.wire.settings import Endpoint, Settings
from transceiver.backend_config import (
    EchoSection,
    ParrotSection,
    RealtimeSection,
    SessionSection,
)

ENVIRONMENT = "FERRYLINE_TRANSCEIVER_"  # prefix of the variables that override the file

MIN_TOKEN = 16  # characters
LAST_PORT = 65535

Seconds = Annotated[float, pydantic.Field(gt=0, le=3600)]


class TransceiverConfig(Settings):
    """Everything `transceiver serve` can be told."""

    listen: Endpoint
    inner: Literal["spp", "plain"] = "spp"
    relay_networks: tuple[IpNetwork, ...] = ()
    cluster: Annotated[int, pydantic.Field(ge=0, le=65535)]
    cluster_prefix: Prefix = IPV4_PREFIX
    keys_file: AbsolutePath
    mint: Annotated[int, pydantic.Field(ge=0, le=31)]
    control_token: str = ""
    redis: RedisUrl | None = pydantic.Field(default=None, repr=False)
    resume: Literal["redis", "off"] | None = None  # None: "redis" if there is one
    workers: Annotated[int, pydantic.Field(ge=1, le=256)] = 1
    capacity: Annotated[int, pydantic.Field(ge=1, le=100_000)] | None = None
    max_lateness_ms: Annotated[float, pydantic.Field(gt=0, le=10_000)] = 20.0
    drain_s: Annotated[float, pydantic.Field(ge=0, le=86_400)] = 3600.0
    backend: Literal["echo", "parrot", "realtime"] = "echo"
    echo: EchoSection = EchoSection()
    parrot: ParrotSection = ParrotSection()
    realtime: RealtimeSection = RealtimeSection()
    session: SessionSection = SessionSection()
    away_after_s: Seconds = 10.0
    consent_s: Seconds = 30.0
    setup_s: Seconds = 15.0

    @property
    def endpoints(self) -> tuple[Address, ...]:
        """Of the workers, in the order of their ports."""
        host, base = self.listen
        return tuple((host, base + number) for number in range(self.workers))

    @property
    def keeps_calls(self) -> bool:
        """Whether calls are kept in Redis, for another process to carry them on."""
        return self.redis is not None and self.resume != "off"

    @pydantic.model_validator(mode="after")
    def _fits_together(self) -> "TransceiverConfig":
        host = ipaddress.ip_address(self.listen[0])
        if host.is_unspecified:
            raise ValueError(
                f"listen = '{host}': route tokens carry it, so write the inner address itself"
            )
        if self.endpoints[-1][1] > LAST_PORT:
            raise ValueError(
                f"workers = {self.workers}: their ports would go from {self.listen[1]} to "
                f"{self.endpoints[-1][1]}, above {LAST_PORT}; listen on a lower one"
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
        if self.resume == "redis" and self.redis is None:
            raise ValueError("resume = 'redis': without `redis`; give its URL, or resume = 'off'")
        if self.consent_s < self.away_after_s:
            raise ValueError(
                f"consent_s = {self.consent_s}: less than away_after_s = {self.away_after_s}"
            )
        if self.backend == "realtime" and not self.realtime.url:
            raise ValueError("realtime.url: missing; backend 'realtime' needs its server's address")
        if self.session.warning_s >= self.session.length_s:
            raise ValueError(
                f"session.warning_s = {self.session.warning_s}: not less than "
                f"session.length_s = {self.session.length_s}; 0 gives no warning"
            )
        return self
