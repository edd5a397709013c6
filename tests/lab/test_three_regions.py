"""A client next to one of three regions, its call in another: directly and by a peer."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.lean_driver import LeanDriver
from tests.lab.three_regions import LINES_S, Regions, ThreeRegions, endpoint, vip
from tests.lab.topology import CLIENT

CALLS = 3


@pytest.fixture(scope="module")
def lab(lab_prefix: str) -> Iterator[ThreeRegions]:
    with ThreeRegions(lab_prefix) as lab:
        yield lab


def talk(
    regions: Regions, *watched: str
) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """Calls for some seconds: their reports, and the flows of the watched regions' relays."""
    site = regions.site
    options = ("--calls", str(CALLS))
    with LeanDriver.start(site.client, site.calls_url, CLIENT, *options) as lean:
        time.sleep(4)
        tables = [regions.regions[each].flows() for each in watched]
        calls: list[dict[str, Any]] = lean.stop()["calls"]
    assert [call["error"] for call in calls] == [None] * CALLS
    assert [(call["lost"]["up"], call["lost"]["down"]) for call in calls] == [(0, 0)] * CALLS
    assert all(call["received"] > 100 for call in calls)
    return calls, tables


def test_a_call_stays_where_its_client_is(lab: ThreeRegions) -> None:
    with Regions(lab, by_peer=False) as regions:
        _, [near, far] = talk(regions, "a", "c")
    assert [flow["endpoint"] for flow in near] == ["{}:{}".format(*endpoint("a"))] * CALLS
    assert far == []


@pytest.mark.parametrize("by_peer", [False, True], ids=["direct", "by_peer"])
def test_a_call_in_another_region(lab: ThreeRegions, by_peer: bool) -> None:
    with Regions(lab, by_peer=by_peer, staffed=["c"]) as regions:
        calls, [near, far, aside] = talk(regions, "a", "c", "b")
        reasons = [regions.regions[each].reasons() for each in ("a", "c")]
    assert aside == []
    assert len(near) == CALLS
    assert {flow["vip"] for flow in near} == {"{}:{}".format(*vip("a"))}
    if by_peer:
        assert {flow["endpoint"] for flow in near} == {"peer 3"}
        assert {(flow["back"], flow["vip_id"]) for flow in far} == {(1, 1)}
        assert {flow["client"] for flow in far} == {flow["client"] for flow in near}
    else:
        assert {flow["endpoint"] for flow in near} == {"{}:{}".format(*endpoint("c"))}
        assert far == []
    for counts in reasons if by_peer else reasons[:1]:
        for way in ("forward", "return"):
            assert counts[way] > 10 * counts[f"slow_{way}"]  # in the kernel
    # The way is that of the inner lines, there and back; nothing takes it twice.
    lines_ms = 2e3 * (LINES_S["a"] + LINES_S["c"])
    assert lines_ms <= min(call["rtt_ms"] for call in calls) < 2 * lines_ms, calls
