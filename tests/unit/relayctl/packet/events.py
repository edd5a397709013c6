"""Events and what decisions make of them, for tests of decisions."""

from relayctl.flow import Flow, FlowKey
from relayctl.packet.actions import Count, Event, FromClient, FromEndpoint
from relayctl.packet.decide import decide
from relayctl.reason import Reason
from relayctl.wire import spp
from relayctl.wire.address import Address, pack
from tests.unit.relayctl.fake_view import FakeView
from tests.unit.relayctl.packets import CLIENT, DTLS, ENDPOINT, spp_header, token

NOW = 5_000_000_000_000
OUR_KEY = FlowKey(CLIENT, 1)
SPORT = spp.inner_port(pack(CLIENT))


def from_client(payload: bytes, client: Address = CLIENT, vip: int = 1) -> FromClient:
    return FromClient(payload, FlowKey(client, vip), NOW)


def from_endpoint(
    payload: bytes = DTLS, sender: Address = ENDPOINT, header: bytes | None = None
) -> FromEndpoint:
    return FromEndpoint(spp_header() if header is None else header, payload, sender, 5107, NOW)


def reason_of(event: Event, view: FakeView, now: int = NOW) -> Reason:
    """The reason of a packet that has to be dropped."""
    [count] = decide(event, view, now)
    assert isinstance(count, Count)
    return count.reason


def carry_out(event: Event, view: FakeView, now: int = NOW) -> Reason:
    """Do what is decided about a packet; its reason."""
    event = event._replace(received_at=now)
    actions = decide(event, view, now)
    view.carry_out(actions)
    assert isinstance(actions[-1], Count)
    return actions[-1].reason


def install_live_flow(view: FakeView, endpoint: Address = ENDPOINT) -> Flow:
    prefix = token(endpoint)[:8]
    flow = Flow(endpoint, 7, SPORT, token=prefix, nexthop_in=1, nexthop_out=2, flags=1, ssrc=9)
    view.flows[OUR_KEY] = flow
    return flow
