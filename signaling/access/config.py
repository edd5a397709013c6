"""Sections of signaling's configuration about who may call, how often, and how slowly.

Pure. `access` and `allow_client_hangup` are keys of the file itself.
"""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import pydantic

from relayctl.wire.address import Address
from relayctl.wire.settings import Settings
from signaling.access.api_keys import ApiKey, ApiKeys

AccessMode = Literal["keys", "open"]

UNGUARDED = (
    "access: missing, and whoever reaches `listen` could call; add an [[api_key]] "
    "(`signaling key` makes one), or write access = 'open'"
)

_Rate = Annotated[int, pydantic.Field(ge=0, le=1_000_000)]


class ApiKeySection(Settings):
    """A key, by its digest; `signaling key` makes one. Keys of one subject share its limits."""

    subject: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9._@-]{1,64}$")]
    sha256: str
    offers_per_minute: _Rate = 600

    @pydantic.field_validator("sha256")
    @classmethod
    def _is_digest(cls, value: str) -> str:
        if not re.fullmatch(r"[0-9a-f]{64}", value):
            raise ValueError("is no SHA-256; write 64 hex digits, as `signaling key` prints them")
        return value

    def api_key(self) -> ApiKey:
        return ApiKey(self.subject, bytes.fromhex(self.sha256), self.offers_per_minute)


class LimitsSection(Settings):
    """What strangers can have of us. 0 switches a limit off."""

    offers_per_minute_per_address: _Rate = 600
    connections: Annotated[int, pydantic.Field(ge=16, le=1_000_000)] = 8192
    connections_per_address: Annotated[int, pydantic.Field(ge=0, le=1_000_000)] = 512


@dataclass(frozen=True, slots=True)
class Rules:
    """`open`: no key is needed. `client_hangup`: an ephemeral key may end calls of its subject.
    `offers_per_minute`: of one client address that shows no API key; 0 is no limit."""

    keys: ApiKeys
    open: bool
    client_hangup: bool
    offers_per_minute: int


class AccessConfig(Protocol):
    """What the whole configuration has of this."""

    @property
    def access(self) -> AccessMode | None: ...
    @property
    def api_keys(self) -> tuple[ApiKeySection, ...]: ...
    @property
    def allow_client_hangup(self) -> bool | None: ...
    @property
    def limits(self) -> LimitsSection: ...


def rules(config: AccessConfig) -> Rules:
    """What `signaling.access.access.Access` goes by. Without a word, keys where there are any."""
    is_open = (config.access or ("keys" if config.api_keys else "open")) == "open"
    client_hangup = config.allow_client_hangup
    return Rules(
        keys=ApiKeys(section.api_key() for section in config.api_keys),
        open=is_open,
        client_hangup=is_open if client_hangup is None else client_hangup,
        offers_per_minute=config.limits.offers_per_minute_per_address,
    )


def faults(config: AccessConfig, listen: Address | int) -> Iterator[str]:
    """Rules about more than one key: one line for each breach. An inherited socket (a number) is
    for whoever knows its address to check, by `unguarded`."""
    if config.access == "keys" and not config.api_keys:
        yield "access = 'keys': there is no [[api_key]]; `signaling key` makes one"
    if not isinstance(listen, int) and unguarded(config, listen[0]):
        yield UNGUARDED
    seen: set[str] = set()
    rates: dict[str, int] = {}
    for section in config.api_keys:
        if section.sha256 in seen:
            yield f"api_key.sha256 of subject '{section.subject}': stands twice; keep one"
        seen.add(section.sha256)
        rate = rates.setdefault(section.subject, section.offers_per_minute)
        if rate != section.offers_per_minute:
            yield (
                f"api_key.offers_per_minute = {section.offers_per_minute}: another key of subject "
                f"'{section.subject}' has {rate}; they share one limit, write the same"
            )


def unguarded(config: AccessConfig, host: str) -> bool:
    """Whether others than this host would get in without anybody having written so."""
    asked = config.access is not None or config.api_keys
    return not asked and not ipaddress.ip_address(host).is_loopback
