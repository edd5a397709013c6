import dataclasses

import pytest

from relayctl.datapath.base import Nexthop
from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.inspect import records
from relayctl.inspect.records import UserPath
from relayctl.reason import Reason

KEY = FlowKey(("198.51.100.7", 40000), 1)
FLOW = Flow(
    endpoint=("10.2.0.2", 5000),
    cluster=7,
    sport=5103,
    nexthop_in=1,
    nexthop_out=2,
    flags=CONFIRMED,
    seen_up=990,
    seen_down=1000,
    ssrc=12345,
    packets_up=3,
    packets_down=4,
    born=900,
    bytes_up=300,
    bytes_down=400,
)
NEXTHOPS = {
    1: Nexthop(port=2, gateway="10.2.0.2", valid=True),
    2: Nexthop(port=1, gateway="10.3.0.1", valid=True, tags=(100, 0)),
}
VIPS = {1: "203.0.113.10:3478"}


def record(flow: Flow = FLOW, *, kernel: bool = True) -> records.Record:
    return records.flow_record(KEY, flow, now=1000, vips=VIPS, nexthops=NEXTHOPS, kernel=kernel)


def test_flow_record() -> None:
    assert record() == {
        "client": "198.51.100.7:40000",
        "vip": "203.0.113.10:3478",
        "vip_id": 1,
        "endpoint": "10.2.0.2:5000",
        "back": None,
        "cluster": 7,
        "state": "confirmed",
        "expired": None,
        "packets": {"up": 3, "down": 4},
        "bytes": {"up": 300, "down": 400},
        "ssrc": 12345,
        "contended_s": None,
        "takeover": False,
        "age_s": 107.4,
        "idle_s": 10.7,
        "path": "kernel",
        "reason": None,
    }


def test_flow_of_a_vip_that_is_gone_shows_its_id() -> None:
    found = records.flow_record(KEY, FLOW, now=1000, vips={}, nexthops=NEXTHOPS, kernel=True)
    assert found["vip"] == "1"


def test_expired_flow_says_why() -> None:
    assert record(FLOW._replace(flags=0))["expired"] == "unconfirmed"


@pytest.mark.parametrize(
    ("flow", "kernel", "reason"),
    [
        (FLOW, False, UserPath.SOCKET_DATAPATH),
        (FLOW._replace(nexthop_in=0), True, UserPath.NO_NEXTHOP_IN),
        (FLOW._replace(nexthop_out=9), True, UserPath.NO_NEXTHOP_OUT),
    ],
)
def test_flow_on_the_user_path_says_why(flow: Flow, kernel: bool, reason: UserPath) -> None:
    found = record(flow, kernel=kernel)
    assert (found["path"], found["reason"]) == ("user", reason)


def test_unresolved_nexthop_is_the_user_path() -> None:
    nexthops = {**NEXTHOPS, 1: dataclasses.replace(NEXTHOPS[1], valid=False)}
    assert records.user_path(FLOW, nexthops, kernel=True) is UserPath.NO_NEXTHOP_IN


def test_nexthop_record_names_its_interface() -> None:
    found = records.nexthop_record(2, NEXTHOPS[2], {1: "outer0"})
    assert found["interface"] == "outer0"
    assert found["gateway"] == "10.3.0.1"
    assert found["tags"] == [100]
    assert found["source_mac"] == "00:00:00:00:00:00"


def test_every_reason_has_a_record() -> None:
    found = records.reason_records({Reason.FORWARD: 5, Reason.SLOW_INSTALLED: 2})
    assert [each["reason"] for each in found] == [reason.label for reason in Reason]
    assert {"reason": "forward", "counted_by": "program", "count": 5} in found
    assert {"reason": "slow_installed", "counted_by": "packet_process", "count": 2} in found


@pytest.mark.parametrize(
    ("contended", "age", "open"), [(995, 5.4, True), (994, 6.4, False), (1001, 0.0, True)]
)
def test_contended_flow(contended: int, age: float, open: bool) -> None:
    found = record(FLOW._replace(contended=contended))
    assert (found["contended_s"], found["takeover"]) == (age, open)


def test_flow_of_ipv6() -> None:
    key = FlowKey(("2001:db8::1", 40000), 1)
    flow = FLOW._replace(endpoint=("fd00:b::5", 5000))
    found = records.flow_record(key, flow, now=1000, vips=VIPS, nexthops=NEXTHOPS, kernel=True)
    assert (found["client"], found["endpoint"]) == ("[2001:db8::1]:40000", "[fd00:b::5]:5000")
