"""The part of signaling's configuration that tells of the fleet: where what stands.

Pure: values in, frozen values or errors out.
"""

import re
from typing import Annotated

import pydantic

from relayctl.wire.address import Address
from relayctl.wire.fields import ClusterSection
from relayctl.wire.settings import Endpoint, Settings
from signaling.fleet.location import Place, is_region
from signaling.fleet.steering import Ingress


def _region(value: str) -> str:
    if not is_region(value):
        raise ValueError("is no region; use letters, digits, - and _, such as 'eu-west' or 'de'")
    return value.lower()


def _base_url(value: str) -> str:
    if not re.fullmatch(r"https?://[^/?#\s]+/?", value):
        raise ValueError("is no base URL; write it as 'http://10.2.0.1:9100'")
    return value.rstrip("/")


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^/?#\s]+(/[^#\s]*)?", value):
        raise ValueError("is no URL; write it as 'http://10.2.0.1:9100/readyz'")
    return value


def _base_urls(value: object) -> object:
    """One as text, or a list."""
    if isinstance(value, str):
        return (_base_url(value),)
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError("want a URL, or a list of them")
    return tuple(map(_base_url, value))


class PlaceSection(Settings):
    """Degrees north and east; a region of any name, or a country's two letters."""

    latitude: Annotated[float, pydantic.Field(ge=-90, le=90)] | None = None
    longitude: Annotated[float, pydantic.Field(ge=-180, le=180)] | None = None
    region: Annotated[str, pydantic.AfterValidator(_region)] | None = None

    @pydantic.model_validator(mode="after")
    def _is_whole(self) -> "PlaceSection":
        if (self.latitude is None) != (self.longitude is None):
            missing = "latitude" if self.latitude is None else "longitude"
            raise ValueError(f"{missing}: missing; a place needs both")
        return self

    @property
    def place(self) -> Place:
        return Place(self.latitude, self.longitude, self.region)


class ClusterPlaceSection(PlaceSection, ClusterSection):
    """A cluster, and where it stands."""


class IngressSection(PlaceSection):
    """A relay site: its VIPs and, if its admin HTTP can be reached from here, that one's URL; a
    list of them, where several relays share the VIPs.

    `clusters`: those that it has a route to, all if none is named. `health`: what is asked whether
    clients may be sent there, by default the relays; one that says yes is enough."""

    name: Annotated[str, pydantic.Field(pattern=r"^[\x21-\x7e]{1,64}$")]
    vips: Annotated[tuple[Endpoint, ...], pydantic.Field(min_length=1)]
    admin: Annotated[tuple[str, ...], pydantic.BeforeValidator(_base_urls)] = ()
    health: Annotated[str, pydantic.AfterValidator(_url)] | None = None
    clusters: tuple[int, ...] = ()

    def ingress(self) -> Ingress:
        return Ingress(
            self.name,
            self.vips,
            self.admin,
            health=(self.health,)
            if self.health
            else tuple(f"{admin}/readyz" for admin in self.admin),
            clusters=frozenset(self.clusters),
            place=self.place,
        )


class TransceiverSection(Settings):
    """Processes of one host, on ports that follow each other. An endpoint is a control address."""

    endpoint: Endpoint  # of the first
    workers: Annotated[int, pydantic.Field(ge=1, le=256)] = 1

    @property
    def endpoints(self) -> tuple[Address, ...]:
        host, base = self.endpoint
        return tuple((host, base + number) for number in range(self.workers))
