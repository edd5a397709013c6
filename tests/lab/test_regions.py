"""Calls that live in another region: by way of a peer relay, there and back."""

import time
from collections.abc import Iterator

import pytest

from tests.clients.lean_driver import LeanDriver
from tests.lab.regions import (
    INGRESS,
    PEER,
    SECOND_PEER,
    LoopingRegions,
    Regions,
    with_second_peer,
)
from tests.lab.service_config import Datapath
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import Lab

CALLS = 3
HEALTH_S = 20.0  # patience, on a machine with other things to do


@pytest.fixture(scope="module")
def lab(lab_prefix: str) -> Iterator[Lab]:
    with Lab(lab_prefix, relays=2) as lab:
        lab.route_vip(INGRESS)
        yield lab


@pytest.mark.parametrize("datapath", ["xdp", "socket"])
def test_a_call_by_way_of_a_peer(lab: Lab, datapath: Datapath) -> None:
    with Regions(in_lab(lab), echo="opus", relays=2, datapath=datapath) as services:
        site = services.site
        calls = ("--calls", str(CALLS))
        with LeanDriver.start(site.client, site.calls_url, site.client_host, *calls) as lean:
            time.sleep(4)
            at_ingress, at_peer = services.flows(INGRESS), services.flows(PEER)
            final = lean.stop()["calls"]
        print(final)
        assert [call["error"] for call in final] == [None] * CALLS
        assert {flow["endpoint"] for flow in at_ingress} == {"peer 1"}
        assert {flow["back"] for flow in at_peer} == {2}
        for side in (at_ingress, at_peer):
            assert {flow["client"].partition(":")[0] for flow in side} == {site.client_host}
            assert {flow["vip_id"] for flow in side} == {1}
            assert {flow["state"] for flow in side} == {"confirmed"}
            assert all(min(flow["packets"].values()) > 50 for flow in side)
        for n in (INGRESS, PEER):
            reasons = services.reasons(n)
            assert reasons["drop_foreign_vip"] == reasons["slow_peer_loop"] == 0
            if datapath == "xdp":
                assert reasons["forward"] > 10 * reasons["slow_forward"]
                assert reasons["return"] > 10 * reasons["slow_return"]


def test_a_peer_that_is_gone_is_noticed_and_taken_back(lab: Lab) -> None:
    with Regions(in_lab(lab), echo="opus", relays=2) as services:
        assert lives(services, True)
        services.kill_relay(PEER)
        assert lives(services, False)
        services.start_relay(PEER)
        assert lives(services, True)


def lives(services: Services, wanted: bool) -> bool:
    """Whether the ingress comes to see its peer so."""
    deadline = time.monotonic() + HEALTH_S
    while time.monotonic() < deadline:
        [peer] = services.ask_relay("/v1/status", INGRESS).json()["peers"]
        if peer["live"] is wanted:
            return True
        time.sleep(0.2)
    return False


def test_calls_of_a_dead_peer_go_on_by_the_other_one(lab: Lab) -> None:
    site = with_second_peer(in_lab(lab))
    with Regions(site, echo="opus", relays=3, datapath="socket") as services:
        calls = ("--calls", "6")
        with LeanDriver.start(site.client, site.calls_url, site.client_host, *calls) as lean:
            time.sleep(4)
            before = {flow["client"]: flow["endpoint"] for flow in services.flows(INGRESS)}
            assert set(before.values()) == {"peer 1", "peer 3"}
            services.kill_relay(PEER)
            time.sleep(12)
            after = {flow["client"]: flow["endpoint"] for flow in services.flows(INGRESS)}
            carried = {flow["client"]: flow for flow in services.flows(SECOND_PEER)}
            final = lean.stop()["calls"]
        services.start_relay(PEER)
        print(final)
        assert after == before  # slots lead elsewhere, flows are as they were
        assert carried.keys() == before.keys()
        assert {flow["state"] for flow in carried.values()} == {"confirmed"}
        assert [call["error"] for call in final] == [None] * 6


def test_two_relays_that_point_at_each_other_do_not_loop(lab: Lab) -> None:
    with LoopingRegions(in_lab(lab), echo="opus", relays=2) as services:
        site = services.site
        with LeanDriver.start(
            site.client, site.calls_url, site.client_host, "--calls", "1"
        ) as lean:
            time.sleep(3)
            looped = services.reasons(PEER)["slow_peer_loop"]
            installed = services.reasons(INGRESS)["slow_installed"]
        del lean
        assert looped > 0
        assert installed <= looped
        assert services.flows(PEER) == []
