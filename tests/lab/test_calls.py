"""Whole calls through relay, transceiver and signaling, at all three places."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relayctl.wire.address import render
from tests.clients.lean_driver import LeanDriver
from tests.lab import ear, http, speech
from tests.lab.deployment import Deployment, Place, deploy

TALK_S = 5.0


@pytest.fixture(scope="module")
def deployment(place: Place) -> Iterator[Deployment]:
    with deploy(place, "ft-") as deployment:
        yield deployment


def test_aiortc_client_hears_itself(deployment: Deployment, tmp_path: Path) -> None:
    site, heard = deployment.site, tmp_path / "heard.wav"
    command = [sys.executable, "-m", "tests.clients.aiortc_client", "--url", site.calls_url]
    options = ["--seconds", str(TALK_S), "--record", str(heard)]
    if site.dev_local:
        options.append("--loopback")
    report = json.loads(site.client.run([*command, *options]).stdout)

    assert report["state"] == "connected"
    assert report["remote"] == render(site.vip)
    assert report["channel"]
    assert report["packets"]["lost"] == 0
    assert report["packets"]["received"] > 48 * TALK_S
    assert report["path"]["path"] == ("kernel" if deployment.place == "xdp" else "user")
    assert report["path"]["ingress"] == site.instance
    samples, rate = speech.read_wav(heard)
    echo = ear.correlate(speech.spoken(TALK_S), samples[0], rate)
    assert echo.windows >= 2
    assert echo.median > 0.7


def test_a_call_from_offer_to_hang_up(deployment: Deployment) -> None:
    services, site = deployment.services, deployment.site
    with LeanDriver.start(site.client, site.calls_url, site.client_host, "--channel") as lean:
        (call,) = lean.first["calls"]
        assert call["error"] is None
        assert call["remote"] == render(site.vip)
        time.sleep(1)
        seen = services.call(call["id"]).json()
        assert seen["state"] == "connected"
        assert seen["vip"] == render(site.vip)
        (flow,) = [flow for flow in services.flows() if flow["client"] == seen["client"]]
        assert flow["endpoint"] == render(site.endpoint)
        assert flow["state"] == "confirmed"
        (final,) = lean.stop()["calls"]
    assert final["lost"] == {"down": 0, "up": 0, "up_reported": 0}
    assert final["rejected"] == 0
    assert services.call(call["id"]).json()["state"] == "ended"


def test_first_check_is_answered_at_once(deployment: Deployment) -> None:
    """20 of 20: no client needs a second Binding request."""
    site = deployment.site
    options = ("--calls", "20", "--every", "0.1", "--rto", "0.5")
    with LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as lean:
        assert [call["error"] for call in lean.first["calls"]] == [None] * 20
        assert [call["first_check_sent"] for call in lean.first["calls"]] == [1] * 20


def test_nobody_without_the_token_controls_a_transceiver(deployment: Deployment) -> None:
    site = deployment.site
    url = f"{site.transceiver_url}/v1/calls/rtc_x"
    assert http.request(site.transceiver, url).status == 401
    assert http.request(site.transceiver, url, token="x" * 32).status == 401
