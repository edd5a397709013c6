"""A call from the talk page in Chromium and Firefox, judged by the browser's own statistics."""

from collections.abc import Iterator
from typing import Any

import pytest

from relayctl.wire.address import render
from tests.browser import browser
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import CLIENT, Lab

SECONDS = 4


@pytest.fixture(scope="module")
def services(request: pytest.FixtureRequest, prefix: str) -> Iterator[Services]:
    with Lab(prefix) as lab, Services(in_lab(lab), datapath=request.param) as running:
        yield running


@pytest.fixture
def call(services: Services, browser_name: str) -> dict[str, Any]:
    options = {
        "url": f"{services.site.base_url}/",
        "browser": browser_name,
        "seconds": SECONDS,
    }
    return browser.run(services.site.client, "call", options, limit_s=60)


@pytest.mark.parametrize(
    ("services", "browser_name"),
    [("xdp", "chromium"), ("xdp", "firefox"), ("socket", "chromium")],
    indirect=True,
)
def test_a_call_connects_and_loses_nothing(services: Services, call: dict[str, Any]) -> None:
    talking, drained, far = call["talking"], call["drained"], call["far"]
    assert call["heard"]
    assert call["faults"] == []
    assert (talking["connection"], talking["dtls"]) == ("connected", "connected")
    assert talking["sctp"] == "connected"
    assert talking["selected"]["remote"] == render(services.site.vip)
    assert talking["energy"] > 0
    assert talking["concealed"] < 0.1 * talking["samples"]
    assert drained["sent"] >= 45 * SECONDS
    assert drained["sent"] == far["packets"]["up"]
    assert drained["received"] == far["packets"]["down"]
    assert (drained["lost"], far["lost"]) == (0, 0)
    flow = next(flow for flow in services.flows() if flow["client"] == far["client"])
    assert far["client"].startswith(f"{CLIENT}:")
    assert flow["path"] == ("kernel" if services.setup.datapath == "xdp" else "user")
    assert flow["packets"]["up"] >= drained["sent"]
    assert flow["packets"]["down"] >= drained["received"]
