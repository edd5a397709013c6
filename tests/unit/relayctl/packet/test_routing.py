import pytest

from relayctl.flow import Flow, FlowKey
from relayctl.packet.actions import Count, Displace, Event, Install, SendInner, SendOuter
from relayctl.packet.decide import decide
from relayctl.packet.routing import Drop, install
from relayctl.packet.token_flows import MAX_CONFIRMED, MAX_NEW
from relayctl.reason import Reason
from tests.unit.relayctl.fake_view import FakeView
from tests.unit.relayctl.packet.events import NOW, from_client, from_endpoint, install_live_flow
from tests.unit.relayctl.packets import CLIENT, DTLS, ENDPOINT

TOKEN = b"IWwJ+/iU"


@pytest.fixture
def view() -> FakeView:
    return FakeView()


@pytest.mark.parametrize("event", [from_client(DTLS), from_endpoint()])
def test_a_live_flow_follows_the_route_table(view: FakeView, event: Event) -> None:
    flow = install_live_flow(view)
    view.nexthops["outer"] = 5
    [install, send, _] = decide(event, view, NOW)
    assert isinstance(install, Install)
    assert (install.flow.nexthop_in, install.flow.nexthop_out) == (1, 5)
    assert (install.flow.token, install.flow.ssrc) == (flow.token, flow.ssrc)
    assert isinstance(send, SendInner | SendOuter)


def test_a_live_flow_keeps_its_nexthops_while_there_is_no_route(view: FakeView) -> None:
    install_live_flow(view)
    view.unreachable = {CLIENT[0]}
    assert [type(action) for action in decide(from_client(DTLS), view, NOW)] == [SendInner, Count]


def crowd(view: FakeView, new: int, confirmed: int) -> list[FlowKey]:
    """Flows of one token: the `new` ones first, each younger than the one before."""
    keys = []
    for number in range(new + confirmed):
        key = FlowKey((CLIENT[0], 1000 + number), 1)
        view.flows[key] = Flow(ENDPOINT, 7, 5107, TOKEN, flags=number >= new, born=100 + number)
        view.tokens.add(TOKEN, key)
        keys.append(key)
    return keys


NEXT = FlowKey((CLIENT[0], 9), 1)
FLOW = Flow(ENDPOINT, 7, 5107, TOKEN)


@pytest.mark.parametrize(("new", "confirmed"), [(0, 0), (MAX_NEW - 1, 3), (0, MAX_CONFIRMED)])
def test_a_token_with_room_takes_one_flow_more(view: FakeView, new: int, confirmed: int) -> None:
    crowd(view, new, confirmed)
    assert install(NEXT, FLOW, view) == [Install(NEXT, FLOW)]


@pytest.mark.parametrize(("new", "confirmed"), [(MAX_NEW, 0), (MAX_NEW, MAX_CONFIRMED), (1, 23)])
def test_the_oldest_new_flow_goes_for_the_next(view: FakeView, new: int, confirmed: int) -> None:
    oldest, *_ = crowd(view, new, confirmed)
    assert install(NEXT, FLOW, view) == [Displace(oldest), Install(NEXT, FLOW)]


def test_a_confirmed_flow_never_goes_for_a_new_one(view: FakeView) -> None:
    crowd(view, 0, MAX_NEW + MAX_CONFIRMED)
    with pytest.raises(Drop) as caught:
        install(NEXT, FLOW, view)
    assert caught.value.reason is Reason.SLOW_TOKEN_FULL


def test_flows_that_ended_or_bear_another_token_are_not_counted(view: FakeView) -> None:
    first, second, *_ = crowd(view, MAX_NEW, 0)
    del view.flows[first]
    assert install(NEXT, FLOW, view) == [Install(NEXT, FLOW)]
    crowd(view, MAX_NEW, 0)
    view.flows[second] = view.flows[second]._replace(token=b"another!")
    assert install(NEXT, FLOW, view) == [Install(NEXT, FLOW)]
