"""Two clusters and two ingresses: calls go where their clients are, and nobody else says where."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet  # type: ignore[import-untyped]

from relayctl.wire.address import Address, render
from tests.clients.lean_driver import LeanDriver
from tests.lab import service_config
from tests.lab.fleet import FIRST, SECOND, Fleet, Offered, fleet, offer, until
from tests.lab.node import Node
from tests.lab.service_config import CLUSTER, Cluster, Vip
from tests.lab.services import wait_for
from tests.lab.topology import CLIENT, SIGNALING, VIP

EU_VIP, US_VIP = (VIP, 3478), (VIP, 3486)
US_CLUSTER = 8
FRANKFURT = {"latitude": 50.1, "longitude": 8.7, "region": "eu"}
VIRGINIA = {"latitude": 38.9, "longitude": -77.4, "region": "us"}
NEW_YORK = {"location": {"latitude": 40.7, "longitude": -74.0}, "country": {"iso_code": "US"}}
EU = {"X-Ferryline-Region": "eu"}
PARIS = {"cf-iplatitude": "48.9", "cf-iplongitude": "2.3", "cf-ipcountry": "FR"}


@dataclass
class World:
    """A replica of signaling that knows places. Its clients are in New York; `proxy` is trusted."""

    fleet: Fleet
    url: str
    proxy: Node

    def offer(self, node: Node | None = None, headers: Mapping[str, str] | None = None) -> Offered:
        offered = offer(node or self.fleet.services.site.client, self.url, headers)
        assert offered.status == 201, offered.text
        return offered


def configuration(world: Fleet, listen: Address) -> str:
    """Ingress `eu` is the relay, health and all; `us` is its other VIP, and never asked."""
    services = world.services
    geoip = world.lab.directory / "city.mmdb"
    writer = MMDBWriter(database_type="Test-City")
    writer.insert_network(IPSet([f"{CLIENT}/32"]), NEW_YORK)
    writer.to_db_file(str(geoip))
    eu, us = {"clusters": [CLUSTER, US_CLUSTER]} | FRANKFURT, VIRGINIA
    return service_config.toml(
        {
            "listen": render(listen),
            "access": "open",
            "keys_file": world.lab.directory / "route.keys",
            "control_token": services.setup.control_token,
            "redis": world.redis.url,
            "geoip": geoip,
            "trusted_proxies": ["10.4.0.1/32"],
            "default_location.region": "eu",
            "limits.offers_per_minute_per_address": 0,
        },
        (
            "ingress",
            {"name": "eu", "vips": [render(EU_VIP)], "admin": services.site.admin_url} | eu,
        ),
        ("ingress", {"name": "us", "vips": [render(US_VIP)]} | us),
        ("cluster", {"id": CLUSTER, "allow": [f"{FIRST[0]}/32"]} | FRANKFURT),
        ("cluster", {"id": US_CLUSTER, "allow": [f"{SECOND[0]}/32"]} | VIRGINIA),
    )


@pytest.fixture(scope="module")
def world(lab_prefix: str) -> Iterator[World]:
    with fleet(
        lab_prefix,
        allow=f"{FIRST[0]}/32",
        clusters=(Cluster(US_CLUSTER, f"{SECOND[0]}/32"),),
        more_vips=(Vip(2, US_VIP, US_VIP),),
    ) as found:
        listen = (SIGNALING, 8081)
        file = found.services.write("places.toml", configuration(found, listen))
        node = found.lab.signaling
        command = [sys.executable, "-m", "signaling", "serve", "--config", str(file)]
        program = found.services.programs["places"] = node.popen("places", command)
        url = f"http://{render(listen)}"
        wait_for(program, node, f"{url}/readyz")
        yield World(found, f"{url}/v1/realtime/calls", found.lab.node("router"))


@pytest.fixture
def both(world: World) -> Iterator[World]:
    """With the transceiver of the other cluster."""
    world.fleet.start_another(US_CLUSTER)
    until(lambda: "cluster=8" in world.offer().headers["X-Ferryline-Steering"])
    yield world
    world.fleet.stop_another()


def confirmed(world: World) -> list[str]:
    """Endpoints of the relay's flows that carry calls."""
    flows = world.fleet.services.flows()
    return [flow["endpoint"] for flow in flows if flow["state"] == "confirmed"]


def test_a_call_goes_to_its_own_side_of_the_ocean(both: World) -> None:
    site = both.fleet.services.site
    with LeanDriver.start(site.client, both.url, site.client_host) as lean:
        (call,) = lean.first["calls"]
        assert call["error"] is None
        assert call["remote"] == render(US_VIP)
        until(lambda: confirmed(both) == [render(SECOND)])
        lean.stop()


@pytest.mark.parametrize("headers", [EU, PARIS, {"X-Forwarded-For": "192.0.2.1"}])
def test_a_client_cannot_choose(both: World, headers: Mapping[str, str]) -> None:
    offered = both.offer(headers=headers)
    assert offered.headers["X-Ferryline-Ingress"] == "us"
    assert offered.headers["X-Ferryline-Steering"] == (
        "location=geoip cluster=8 ingress=us reason=nearest"
    )
    assert str(US_VIP[1]) in offered.text
    assert str(EU_VIP[1]) not in offered.text


@pytest.mark.parametrize(
    ("headers", "steering"),
    [
        (EU, "location=region cluster=7 ingress=eu reason=nearest"),
        (PARIS, "location=cloudflare cluster=7 ingress=eu reason=nearest"),
        ({"X-Forwarded-For": CLIENT}, "location=geoip cluster=8 ingress=us reason=nearest"),
        ({}, "location=default cluster=7 ingress=eu reason=nearest"),
        ({"cf-iplatitude": "x"}, "location=default cluster=7 ingress=eu reason=nearest"),
    ],
)
def test_a_proxy_of_ours_is_believed(
    both: World, headers: Mapping[str, str], steering: str
) -> None:
    assert both.offer(both.proxy, headers).headers["X-Ferryline-Steering"] == steering


def test_over_the_ocean_when_there_is_nobody_here(world: World) -> None:
    """The client still comes in at its own ingress."""
    assert world.offer().headers["X-Ferryline-Steering"] == (
        "location=geoip cluster=7 ingress=us reason=nearer_full"
    )


def test_a_dead_relay_gets_no_new_calls(world: World) -> None:
    services = world.fleet.services
    nearest = "location=region cluster=7 ingress=eu reason=nearest"
    detour = "location=region cluster=7 ingress=us reason=nearer_ingress_down"

    def steering() -> str:
        return str(world.offer(world.proxy, EU).headers["X-Ferryline-Steering"])

    assert steering() == nearest
    services.relay.kill()
    until(lambda: steering() == detour)
    services.start_relay()
    until(lambda: steering() == nearest)
