"""A muted Chromium with two ways to the relay: does the call stay on the way it chose?

Muted, it sends no RTP, so only checks tell the two ways apart. The transceiver echoes and has
nothing to say then: `moves` is its choice of way, the packets are its RTCP and what is late.
"""

from typing import Any

from tests.browser import browser
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab.deployment import deploy
from tests.report import Target

SECONDS = 70.0  # Chromium checks its spare way every 25 s

TARGETS = (
    Target("muted_two_interfaces_moves", "=", 0),
    Target("muted_two_interfaces_spare_packets", "=", 0),
)


def measurements() -> list[Measurement]:
    return [Measurement("muted_two_interfaces", TARGETS, measure)]


def measure(seconds: float = SECONDS) -> Findings:
    with deploy("xdp", PREFIX, second_client=True) as place:
        options = {
            "url": f"{place.site.base_url}/",
            "browser": "chromium",
            "seconds": seconds,
            "muted": True,
        }
        report = browser.run(place.site.client, "two_interfaces", options, limit_s=seconds + 60)
    before, after = report["before"], report["after"]
    expect(report["heard"], "chromium heard nothing before it was muted")
    expect(report["end"]["connection"] == "connected", "the call did not live to the end")
    spare = _spare(before), _spare(after)
    checks = spare[1]["checks_sent"] - spare[0]["checks_sent"]
    expect(checks > 0, "chromium did not check its spare way")
    return Findings(
        {
            "muted_two_interfaces_moves": after["far"]["moves"] - before["far"]["moves"],
            "muted_two_interfaces_spare_packets": spare[1]["received"] - spare[0]["received"],
        },
        {"seconds": seconds, "checks_on_the_spare_way": checks, "before": before, "after": after},
    )


def _spare(look: dict[str, Any]) -> dict[str, Any]:
    """The way that chromium did not choose."""
    spare: list[dict[str, Any]] = [path for path in look["paths"] if not path["selected"]]
    expect(len(spare) == 1, f"{len(spare)} spare ways instead of one")
    return spare[0]
