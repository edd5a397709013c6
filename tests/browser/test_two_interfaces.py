"""A client with two ways to the relay: the voice stays on the one it chose."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import browser
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import CLIENT, CLIENT_2, Lab

SECONDS = 30  # Chromium checks its spare way every 25 s


@pytest.fixture(scope="module")
def services(prefix: str) -> Iterator[Services]:
    reason = browser.unavailable("chromium")
    if reason is not None:
        pytest.skip(reason)
    with Lab(f"{prefix}2-", second_client=True) as lab, Services(in_lab(lab)) as running:
        yield running


def spare(look: dict[str, Any]) -> dict[str, Any]:
    """The way that was not chosen."""
    (path,) = (path for path in look["paths"] if not path["selected"])
    found: dict[str, Any] = path
    return found


@pytest.mark.slow
@pytest.mark.parametrize("muted", [False, True])
def test_checks_on_the_spare_way_move_nothing(services: Services, muted: bool) -> None:
    options = {
        "url": f"{services.site.base_url}/",
        "browser": "chromium",
        "seconds": SECONDS,
        "muted": muted,
    }
    report = browser.run(services.site.client, "two_interfaces", options, limit_s=SECONDS + 45)
    before, after = report["before"], report["after"]
    assert report["heard"]
    assert {path["local"] for path in after["paths"]} == {CLIENT, CLIENT_2}
    assert spare(after)["checks_sent"] > spare(before)["checks_sent"]
    assert spare(after)["bytes_received"] == spare(before)["bytes_received"]
    assert after["far"]["moves"] == before["far"]["moves"]
    assert after["far"]["client"] == before["far"]["client"]
