import pytest

from relayctl.datapath.memory_flows import Entry, MemoryFlows
from relayctl.flow import Flow, FlowKey, pack_flow
from relayctl.wire.route_token import Route
from tests.unit.relayctl.packets import CLIENT, ENDPOINT, ENDPOINT_6, OTHER_ENDPOINT

KEY = FlowKey(CLIENT, 1)


def test_table_of_limited_capacity() -> None:
    flows = MemoryFlows(1)
    other = FlowKey(CLIENT, 2)
    assert flows.install(KEY, Flow(ENDPOINT, 7, 5107))
    assert not flows.install(other, Flow(ENDPOINT, 7, 5107))
    assert flows.install(KEY, Flow(OTHER_ENDPOINT, 7, 5107))
    assert [key for key, _ in flows.items()] == [KEY]
    assert flows.delete(KEY)
    assert not flows.delete(KEY)
    assert flows.get(KEY) is None


def test_an_entry_keeps_every_field() -> None:
    flow = Flow(ENDPOINT, 7, 5107, b"prefix..", *range(1, 15))
    assert all(flow)
    assert Entry(flow).flow() == flow


@pytest.mark.parametrize(
    ("endpoint", "route", "leads"),
    [
        (ENDPOINT, Route(7, 0x0A020002, 5000, b""), True),
        (ENDPOINT, Route(8, 0x0A020002, 5000, b""), False),
        (ENDPOINT, Route(7, 0x0A020003, 5000, b""), False),
        (ENDPOINT, Route(7, 0x0A020002, 5001, b""), False),
        (ENDPOINT_6, Route(7, 2, 5000, b""), True),
    ],
)
def test_which_route_leads_to_a_flow(endpoint: tuple[str, int], route: Route, leads: bool) -> None:
    assert Entry(Flow(endpoint, 7, 5107)).leads_to(route) is leads


def test_packed_like_a_map() -> None:
    flows = MemoryFlows(2)
    flow = Flow(ENDPOINT, 7, 5107)
    flows.install(KEY, flow)
    assert list(flows.batches()) == [(KEY, pack_flow(flow))]
