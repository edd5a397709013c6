"""Where a request comes from: the client's address, and its place on Earth.

What a proxy says counts only if the proxy is one of ours (`trusted_proxies`): else every client
could choose its address and its place. Ours have to overwrite what clients send under these names.
Pure but for the reader of the GeoIP file, which comes in.
"""

import functools
import ipaddress
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import maxminddb
from starlette.requests import HTTPConnection

from relayctl.wire.cluster import Network

MAX_HOPS = 16  # of `X-Forwarded-For`, from the right
MAX_HOP = 64  # characters; what is kept in memory has to be short
REGION = "X-Ferryline-Region"

# headers of latitude, longitude and country
_EDGES = (
    ("cloudflare", "cf-iplatitude", "cf-iplongitude", "cf-ipcountry"),
    (
        *("cloudfront", "cloudfront-viewer-latitude", "cloudfront-viewer-longitude"),
        "cloudfront-viewer-country",
    ),
)
_TELLING = frozenset(
    name.encode() for name in (REGION.lower(), *(name for _, *names in _EDGES for name in names))
)
_FORWARDED_FOR = b"x-forwarded-for"
_CLIENT = "ferryline.client"  # in a request's scope: several ask for it
_DEGREES = re.compile(r"[+-]?[0-9]{1,3}(\.[0-9]{1,12})?")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")


class LocationError(Exception):
    """The GeoIP file cannot be used."""


@dataclass(frozen=True, slots=True)
class Place:
    """Degrees north and east, both or none; the name of a region, in small letters."""

    latitude: float | None = None
    longitude: float | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True)
class Where(Place):
    """The place of a client, and how it became known."""

    source: str = "default"


NOWHERE = Where()


class GeoReader(Protocol):
    """A `maxminddb.Reader`."""

    def get(self, ip_address: str) -> object:
        """The record of an address, None if there is none. Raises `ValueError`."""


class Locator:
    """`regions`: names that mean something here. `ignored` is told which source was no use."""

    def __init__(
        self,
        *,
        trusted: tuple[Network, ...] = (),
        geoip: GeoReader | None = None,
        default: Place = NOWHERE,
        regions: Collection[str] = (),
        ignored: Callable[[str], None] = lambda source: None,
    ) -> None:
        self._trusted = trusted
        self._geoip = geoip
        self._default = Where(default.latitude, default.longitude, default.region)
        self._regions = frozenset(regions)
        self._ignored = ignored

    def locate(self, request: HTTPConnection) -> Where:
        """The first of these that says something: our proxy's headers, GeoIP, the default."""
        if _is_inside(_peer(request), self._trusted):
            for where in self._told(request):
                return where
        return self._looked_up(client_of(request, self._trusted)) or self._default

    def _told(self, request: HTTPConnection) -> Iterator[Where]:
        if _TELLING.isdisjoint(name for name, _ in request.scope["headers"]):
            return
        headers = request.headers
        if text := headers.get(REGION):
            if region := self._region(text):
                yield Where(region=region, source="region")
            else:
                self._ignored("region")
        for source, *names in _EDGES:
            latitude, longitude, country = (headers.get(name) for name in names)
            degrees = read_degrees(latitude, longitude)
            if degrees is None and (latitude or longitude):
                self._ignored(source)
            region = self._region(country or "")
            if degrees or region:
                yield _where(degrees, region, source)

    def _looked_up(self, client: str) -> Where | None:
        if self._geoip is None or not client:
            return None
        try:
            record = self._geoip.get(client)
        except (ValueError, maxminddb.InvalidDatabaseError):  # e.g. IPv6 in a file of IPv4
            self._ignored("geoip")
            return None
        location, country = _inner(record, "location"), _inner(record, "country")
        degrees = read_degrees(location.get("latitude"), location.get("longitude"))
        region = self._region(str(country.get("iso_code")))
        return _where(degrees, region, "geoip") if degrees or region else None

    def _region(self, text: str) -> str | None:
        name = text.lower()
        return name if name in self._regions else None


def open_geoip(path: Path) -> GeoReader:
    """Open a MaxMind DB of cities or countries. Raises `LocationError`."""
    try:
        reader: GeoReader = maxminddb.open_database(path)
    except OSError as error:
        raise LocationError(f"{error.strerror}; GeoLite2-City.mmdb is such a file") from None
    except maxminddb.InvalidDatabaseError:
        raise LocationError("is no MaxMind DB; GeoLite2-City.mmdb is such a file") from None
    return reader


def client_of(request: HTTPConnection, trusted: tuple[Network, ...]) -> str:
    """IP address of the client, canonical: behind our own proxies the last one that is not ours.

    "" if the server cannot tell."""
    client = request.scope.get(_CLIENT)
    if client is None:
        client = request.scope[_CLIENT] = _find_client(request, trusted)
    return str(client)


def read_degrees(latitude: object, longitude: object) -> tuple[float, float] | None:
    """Both, if both are numbers (or such text) of places on Earth."""
    north, east = _degrees(latitude, 90), _degrees(longitude, 180)
    return None if north is None or east is None else (north, east)


def is_region(name: str) -> bool:
    """Whether a region may be called so."""
    return _NAME.fullmatch(name) is not None


def _where(degrees: tuple[float, float] | None, region: str | None, source: str) -> Where:
    latitude, longitude = degrees or (None, None)
    return Where(latitude, longitude, region, source)


def _find_client(request: HTTPConnection, trusted: tuple[Network, ...]) -> str:
    client = _peer(request)
    if not _is_inside(client, trusted):
        return client
    told = b",".join(value for name, value in request.scope["headers"] if name == _FORWARDED_FOR)
    hops = told.rsplit(b",", MAX_HOPS)[-MAX_HOPS:]
    for hop in reversed(hops):
        host = _host(hop.strip()[:MAX_HOP].decode("latin-1"))
        if not host:  # whoever is ours and wrote this does not tell
            break
        client = host
        if not _is_inside(host, trusted):
            break
    return client


def _degrees(value: object, limit: int) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and not _DEGREES.fullmatch(value):
        return None
    degrees = float(value)
    return degrees if -limit <= degrees <= limit else None


def _peer(request: HTTPConnection) -> str:
    return _host(request.client.host) if request.client else ""


_ip = functools.lru_cache(maxsize=1024)(ipaddress.ip_address)  # asked for several times


@functools.lru_cache(maxsize=1024)
def _host(text: str) -> str:
    """Canonical IP of `<ip>`, `<ip>:<port>` or `[<ip>]:<port>`; "" if it is none of these."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        ip = _ip(text)
    except ValueError:
        return ""
    mapped = ip.ipv4_mapped if ip.version == 6 else None
    return str(mapped or ip)


@functools.lru_cache(maxsize=1024)
def _is_inside(host: str, networks: tuple[Network, ...]) -> bool:
    if not host or not networks:
        return False
    ip = _ip(host)
    return any(ip in network for network in networks)


def _inner(record: object, key: str) -> dict[str, object]:
    value = record.get(key) if isinstance(record, dict) else None
    return value if isinstance(value, dict) else {}
