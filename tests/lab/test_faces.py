"""Whole calls by the faces that are not OpenAI's: Pipecat's and WHIP."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from relayctl.wire.address import render
from tests.lab import ear, speech
from tests.lab.conftest import PREFIX
from tests.lab.deployment import Deployment, deploy, unavailable


def client(deployment: Deployment, module: str, *options: str) -> dict[str, Any]:
    """What a client of `tests.clients` reports."""
    command = [sys.executable, "-m", f"tests.clients.{module}", *options]
    done = deployment.site.client.run(command, timeout_s=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    if reason := unavailable("xdp"):
        pytest.skip(reason)


def test_a_whip_session_with_trickle_restart_and_end(tmp_path: Path) -> None:
    heard = tmp_path / "heard.wav"
    with deploy("xdp", f"{PREFIX}w-") as deployment:
        site = deployment.site
        url = f"{site.base_url}/whip"
        report = client(deployment, "whip_client", "--url", url, "--record", str(heard))
        call = deployment.services.call(report["headers"]["location"].split("/")[-1]).json()
    assert report["statuses"] == {
        "post": 201,
        "trickle": 204,
        "no_match": 428,
        "restart": 200,
        "late": 412,
        "delete": 200,
    }
    assert report["headers"]["content-type"] == "application/sdp"
    assert "a=sendrecv" in report["answer"]
    assert report["tag"] not in ("", report["headers"]["etag"])
    assert re.findall(r"a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ host", report["fragment"]) == [
        (site.vip[0], str(site.vip[1]))
    ]
    assert (report["call"]["state"], report["call"]["vip"]) == ("connected", render(site.vip))
    before, after = report["heard_s"]
    assert before > 2
    assert after > 2  # the restart did not stop the media
    samples, rate = speech.read_wav(heard)
    echo = ear.correlate(speech.spoken(4.0), samples[0], rate)
    assert echo.median > 0.7
    assert (call["state"], call["reason"]) == ("ended", "hangup")


def test_a_pipecat_session_with_a_turn_and_a_new_peer_connection() -> None:
    with deploy("xdp", f"{PREFIX}p-", backend="parrot") as deployment:
        report = client(deployment, "pipecat_client", "--url", deployment.site.base_url)
    assert report["started"]["iceConfig"] == {"iceServers": []}
    assert report["patched"] == 200
    kinds = [message["type"] for message in report["told"]]
    ready = report["told"][kinds.index("bot-ready")]
    assert ready["id"] == "client-ready"
    assert ready["data"]["version"].startswith("2.")
    turn = [
        "user-started-speaking",
        "user-stopped-speaking",
        "bot-started-speaking",
        "bot-stopped-speaking",
    ]
    assert [kind for kind in kinds if kind in turn] == turn
    assert not any("error" in kind for kind in kinds)
    old, new = report["calls"]
    assert (old["state"], old["reason"]) == ("ended", "hangup")
    assert new["state"] == "connected"
    assert new["id"] != old["id"]
