from collections import Counter
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import maxminddb
import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet  # type: ignore[import-untyped]
from starlette.requests import HTTPConnection

from signaling.fleet.location import (
    MAX_HOPS,
    LocationError,
    Locator,
    Place,
    Where,
    client_of,
    is_region,
    open_geoip,
    read_degrees,
)

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
PROXY = "10.0.0.1"
CLIENT = "203.0.113.9"


def request(peer: str | None, *headers: tuple[str, str]) -> HTTPConnection:
    return HTTPConnection(
        {
            "type": "http",
            "client": (peer, 1234) if peer is not None else None,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        }
    )


def forwarded(*values: str) -> HTTPConnection:
    return request(PROXY, *(("X-Forwarded-For", value) for value in values))


@pytest.mark.parametrize(
    ("asked", "client"),
    [
        (request(CLIENT), CLIENT),
        (request(CLIENT, ("X-Forwarded-For", "1.2.3.4")), CLIENT),  # a client may say what it likes
        (request("::ffff:203.0.113.9"), CLIENT),
        (request("2001:DB8:0::1"), "2001:db8::1"),
        (request(None), ""),
        (request("testclient"), ""),
        (forwarded(CLIENT), CLIENT),
        (forwarded(f"1.2.3.4, {CLIENT}"), CLIENT),  # the left one is what the client sent
        (forwarded("1.2.3.4", CLIENT), CLIENT),
        (forwarded(f"1.2.3.4, {CLIENT}, 10.0.0.2"), CLIENT),  # two of our proxies
        (forwarded(f"{CLIENT}:50000"), CLIENT),
        (forwarded("[2001:db8::1]:443"), "2001:db8::1"),
        (forwarded("2001:db8::1, fd00::5"), "2001:db8::1"),
        (forwarded("10.0.0.3, 10.0.0.2"), "10.0.0.3"),  # a client inside
        (forwarded(f"{CLIENT}, unknown"), PROXY),
        (forwarded(f"{CLIENT}, unknown, 10.0.0.2"), "10.0.0.2"),
        (forwarded(""), PROXY),
        (forwarded(","), PROXY),
        (request(PROXY), PROXY),
    ],
)
def test_the_address_of_a_client(asked: HTTPConnection, client: str) -> None:
    assert client_of(asked, PROXIES) == client


def test_hops_are_bounded() -> None:
    hops = ",".join([CLIENT] + ["10.0.0.2"] * 100_000)
    assert client_of(forwarded(hops), PROXIES) == "10.0.0.2"
    assert client_of(forwarded(",".join([CLIENT] + ["10.0.0.2"] * (MAX_HOPS - 1))), PROXIES) == (
        CLIENT
    )


def test_without_proxies_nobody_is_believed() -> None:
    assert client_of(forwarded(CLIENT), ()) == PROXY


class Reader:
    """Records by address."""

    def __init__(self, **records: object) -> None:
        self.records = {"203.0.113.9": records.get("record")}

    def get(self, ip_address: str) -> object:
        if ":" in ip_address:
            raise ValueError("an IPv6 address in a file of IPv4")
        if ip_address == "203.0.113.66":
            raise maxminddb.InvalidDatabaseError("broken")
        return self.records.get(ip_address)


def locator(ignored: Counter[str] | None = None, **options: Any) -> Locator:
    counts = Counter[str]() if ignored is None else ignored

    def count(source: str) -> None:
        counts[source] += 1

    return Locator(trusted=PROXIES, regions={"eu", "de"}, ignored=count, **options)


CLOUDFLARE = (("cf-iplatitude", "52.5"), ("cf-iplongitude", "-13.25"), ("cf-ipcountry", "DE"))
CLOUDFRONT = (
    ("CloudFront-Viewer-Latitude", "1.5"),
    ("CloudFront-Viewer-Longitude", "2"),
    ("CloudFront-Viewer-Country", "FR"),
)
OWN = ("X-Ferryline-Region", "EU")
GEOIP = Reader(record={"location": {"latitude": 48.9, "longitude": 2.3}})
DEFAULT = Place(10.0, 20.0)


@pytest.mark.parametrize(
    ("headers", "where"),
    [
        ((OWN, *CLOUDFLARE), Where(region="eu", source="region")),
        ((*CLOUDFRONT, *CLOUDFLARE), Where(52.5, -13.25, "de", "cloudflare")),
        (CLOUDFRONT, Where(1.5, 2.0, None, "cloudfront")),
        (CLOUDFLARE[2:], Where(region="de", source="cloudflare")),
        ((("cf-ipcountry", "XX"),), Where(48.9, 2.3, None, "geoip")),
        ((), Where(48.9, 2.3, None, "geoip")),
    ],
)
def test_the_order_of_the_sources(headers: tuple[tuple[str, str], ...], where: Where) -> None:
    asked = request(PROXY, ("X-Forwarded-For", CLIENT), *headers)
    ignored = Counter[str]()
    assert locator(ignored, geoip=GEOIP, default=DEFAULT).locate(asked) == where
    assert not ignored


def test_nobody_but_a_proxy_of_ours_says_where_a_client_is() -> None:
    asked = request(CLIENT, OWN, *CLOUDFLARE, *CLOUDFRONT)
    assert locator(geoip=GEOIP).locate(asked).source == "geoip"
    assert locator(default=DEFAULT).locate(asked) == Where(10.0, 20.0, None, "default")
    assert Locator(regions={"eu"}).locate(request(PROXY, OWN)) == Where()


@pytest.mark.parametrize(
    ("headers", "source"),
    [
        ((("X-Ferryline-Region", "mars"),), "region"),
        ((("X-Ferryline-Region", "eu\tx"),), "region"),
        ((("cf-iplatitude", "91"), ("cf-iplongitude", "0")), "cloudflare"),
        ((("cf-iplatitude", "1"),), "cloudflare"),
        ((("cf-iplatitude", "nan"), ("cf-iplongitude", "0")), "cloudflare"),
        ((("cf-iplatitude", "1e1"), ("cf-iplongitude", "0")), "cloudflare"),
        ((("cf-iplatitude", "1" * 5000), ("cf-iplongitude", "0")), "cloudflare"),
        (
            (("CloudFront-Viewer-Latitude", "0x1"), ("CloudFront-Viewer-Longitude", "0")),
            "cloudfront",
        ),
    ],
)
def test_garbage_is_counted_and_changes_nothing(
    headers: tuple[tuple[str, str], ...], source: str
) -> None:
    ignored = Counter[str]()
    where = locator(ignored, default=DEFAULT).locate(request(PROXY, *headers))
    assert where == Where(10.0, 20.0, None, "default")
    assert ignored == {source: 1}


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        "x",
        {"location": None, "country": 5},
        {"location": {"latitude": "north", "longitude": 2}},
        {"location": {"latitude": float("nan"), "longitude": 2}},
        {"location": {"latitude": True, "longitude": False}},
        {"country": {"iso_code": "FR"}},
    ],
)
def test_a_record_without_a_place(record: object) -> None:
    where = locator(geoip=Reader(record=record), default=DEFAULT).locate(request(CLIENT))
    assert where.source == "default"


def test_a_record_of_a_country_alone() -> None:
    reader = Reader(record={"country": {"iso_code": "DE"}})
    assert locator(geoip=reader).locate(request(CLIENT)) == Where(region="de", source="geoip")


@pytest.mark.parametrize("peer", ["2001:db8::1", "203.0.113.66"])
def test_an_address_that_the_file_cannot_look_up(peer: str) -> None:
    ignored = Counter[str]()
    assert locator(ignored, geoip=GEOIP).locate(request(peer)) == Where()
    assert ignored == {"geoip": 1}


def test_no_address_is_not_looked_up() -> None:
    ignored = Counter[str]()
    assert locator(ignored, geoip=GEOIP).locate(request(None)) == Where()
    assert not ignored


def test_a_real_file(tmp_path: Path) -> None:
    writer = MMDBWriter(ip_version=6, database_type="Test-City", ipv4_compatible=True)
    record = {"location": {"latitude": 52.5, "longitude": 13.4}, "country": {"iso_code": "DE"}}
    writer.insert_network(IPSet(["203.0.113.0/24"]), record)
    writer.insert_network(IPSet(["2001:db8::/32"]), {"location": {"latitude": 1.0}})
    writer.to_db_file(str(tmp_path / "city.mmdb"))
    found = locator(geoip=open_geoip(tmp_path / "city.mmdb"))
    assert found.locate(request(CLIENT)) == Where(52.5, 13.4, "de", "geoip")
    assert found.locate(request("2001:db8::1")) == Where()
    assert found.locate(request("192.0.2.1")) == Where()


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(LocationError, match="No such file"):
        open_geoip(tmp_path / "absent")
    (tmp_path / "bad").write_text("hello")
    with pytest.raises(LocationError, match="no MaxMind DB"):
        open_geoip(tmp_path / "bad")


def test_degrees_and_names() -> None:
    assert read_degrees("-90", "180.0") == (-90.0, 180.0)
    assert read_degrees(1, "2") == (1.0, 2.0)
    assert read_degrees(None, "2") is None
    assert read_degrees("\u0661", "2") is None  # digits, but not ours
    assert is_region("eu-west_1")
    assert not is_region("eu west")
    assert not is_region("")
