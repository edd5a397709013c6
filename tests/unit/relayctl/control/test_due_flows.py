import numpy as np
import pytest

from relayctl.cached_flow import encode
from relayctl.control import due_flows
from relayctl.control.due_flows import SPREAD, Due, DueFlows
from relayctl.control.flow_slice import FlowSlice
from relayctl.flow import CONFIRMED, Flow, FlowKey, pack_flow
from tests.lab.service_config import CLUSTER

BORN = 1000


KEY = FlowKey(("198.51.100.7", 40000), 1)


def flow_of(now: int, flags: int = CONFIRMED) -> Flow:
    """A flow of an IPv4 cluster whose client spoke at `now`."""
    return Flow(
        endpoint=("10.2.0.2", 5000),
        cluster=CLUSTER,
        sport=5100,
        token=b"IWwJ+/iU",
        nexthop_in=1,
        nexthop_out=1,
        flags=flags,
        born=BORN,
        seen_up=now,
        ssrc=7,
    )


def sweeps(
    first: int, last: int, *, port: int = 40000, flags: int = CONFIRMED, speaks: bool = True
) -> list[Due]:
    """What is due of one flow in sweeps at each unit."""
    flows = DueFlows({CLUSTER: bytes(10) + b"\xff\xff"}, first - 1)
    key, found = FlowKey(("198.51.100.7", port), 1), list[Due]()
    for now in range(first, last):
        flow = flow_of(now if speaks else BORN, flags)
        flows.begin(now)
        found += flows.see(FlowSlice(bytes(key), pack_flow(flow)), np.array([True]))
    return found


@pytest.mark.parametrize("port", range(40000, 40040, 5))
def test_a_young_flow_is_written_once_and_kept_from_then_on(port: int) -> None:
    due = sweeps(BORN, BORN + 1 + SPREAD, port=port)
    assert due[0].is_new
    assert [each.is_new for each in due[1:]] in ([False], [False, False])


@pytest.mark.parametrize("after", range(0, SPREAD, 6))
def test_what_redis_lost_is_due_within_one_round(after: int) -> None:
    due = sweeps(BORN + 30 + after, BORN + 30 + after + SPREAD)
    assert [each.is_new for each in due] == [False]


@pytest.mark.parametrize("change", [{"born": BORN + 3}, {"ssrc": 8}])
def test_a_flow_that_is_another_one_now_is_written_again(change: dict[str, int]) -> None:
    flows, before = DueFlows({}, BORN - 1), flow_of(now=BORN)
    after = before._replace(seen_up=BORN + 3, **change)  # type: ignore[arg-type]
    due = []
    for now, flow in ((BORN, before), (BORN + 1, before), (BORN + 3, after), (BORN + 4, after)):
        flows.begin(now)
        seen = flows.see(FlowSlice(bytes(KEY), pack_flow(flow)), np.array([True]))
        due += [each.value for each in seen if each.is_new]
    assert due == [encode(before), encode(after)]


def test_no_more_is_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_flows, "MAX_RECENT", 10)
    flows = DueFlows({}, BORN - 1)
    for number in range(50):
        flows.begin(BORN)
        key = FlowKey(("198.51.100.7", 1000 + number), 1)
        flows.see(FlowSlice(bytes(key), pack_flow(flow_of(now=BORN))), np.array([True]))
    flows.begin(BORN)
    assert len(flows._written) == 10


def test_an_unconfirmed_flow_is_not() -> None:
    assert not sweeps(BORN, BORN + SPREAD, flags=0)


def test_one_whose_client_fell_silent_is_not_kept() -> None:
    assert not sweeps(BORN + 2 * SPREAD, BORN + 3 * SPREAD, speaks=False)
