import pytest

from relayctl.flow import FlowKey, State, units
from relayctl.packet.actions import Count, FromEndpoint, Install, SendOuter
from relayctl.packet.decide import decide
from relayctl.reason import Reason
from tests.unit.relayctl.fake_view import FakeView
from tests.unit.relayctl.packet.events import (
    NOW,
    OUR_KEY,
    from_endpoint,
    install_live_flow,
    reason_of,
)
from tests.unit.relayctl.packets import (
    CLIENT,
    CLIENT_6,
    DTLS,
    ENDPOINT,
    ENDPOINT_6,
    OTHER_ENDPOINT,
    VIP_6,
    spp_header,
)


@pytest.fixture
def view() -> FakeView:
    return FakeView()


def test_return_packet_of_a_live_flow(view: FakeView) -> None:
    install_live_flow(view)
    assert decide(from_endpoint(), view, NOW) == [
        SendOuter(OUR_KEY, DTLS),
        Count(Reason.SLOW_RETURN),
    ]


def test_return_packet_of_another_endpoint_never_passes(view: FakeView) -> None:
    flow = install_live_flow(view)
    assert reason_of(from_endpoint(sender=OTHER_ENDPOINT), view) is Reason.SLOW_NOT_OWNER
    assert view.flows == {OUR_KEY: flow}


def test_return_packet_of_a_lost_flow_makes_it_again(view: FakeView) -> None:
    install, send, count = decide(from_endpoint(), view, NOW)
    assert isinstance(install, Install)
    flow = install.flow
    assert (flow.endpoint, flow.cluster, flow.sport, flow.token) == (ENDPOINT, 7, 5107, bytes(8))
    assert flow.state is State.NEW
    assert (flow.packets_down, flow.bytes_down, flow.born) == (1, len(DTLS), units(NOW))
    assert send == SendOuter(OUR_KEY, DTLS)
    assert count == Count(Reason.SLOW_RECOVERED)


def test_deleted_flows_stay_deleted_for_a_while(view: FakeView) -> None:
    view.tombstones[OUR_KEY] = NOW + 1
    assert reason_of(from_endpoint(), view) is Reason.SLOW_TOMBSTONE
    view.tombstones[OUR_KEY] = NOW
    assert decide(from_endpoint(), view, NOW)[-1] == Count(Reason.SLOW_RECOVERED)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        pytest.param(from_endpoint(header=b"\x16" * 38), Reason.SLOW_NOT_SPP, id="no_spp"),
        pytest.param(from_endpoint(header=b"\x56\xec"), Reason.SLOW_NOT_SPP, id="cut"),
        pytest.param(from_endpoint(b""), Reason.SLOW_NOT_SPP, id="no_payload"),
        pytest.param(
            from_endpoint(header=spp_header(CLIENT_6)), Reason.SLOW_NOT_SPP, id="two_families"
        ),
        pytest.param(
            from_endpoint(header=spp_header(CLIENT, VIP_6)), Reason.SLOW_NOT_SPP, id="families"
        ),
        pytest.param(
            from_endpoint(header=spp_header(("::1", 9), VIP_6)), Reason.SLOW_BAD_SOURCE, id="six"
        ),
        pytest.param(
            from_endpoint(header=spp_header(vip=("203.0.113.11", 3478))),
            Reason.SLOW_FOREIGN_VIP,
            id="vip",
        ),
        pytest.param(from_endpoint(sender=("10.3.0.2", 5000)), Reason.SLOW_NOT_ALLOWED, id="host"),
        pytest.param(from_endpoint(sender=("10.2.0.2", 80)), Reason.SLOW_NOT_ALLOWED, id="port"),
        pytest.param(
            from_endpoint(header=spp_header(("10.2.0.9", 22))), Reason.SLOW_BAD_SOURCE, id="inside"
        ),
    ],
)
def test_return_packets_that_make_no_flow(
    view: FakeView, event: FromEndpoint, reason: Reason
) -> None:
    assert reason_of(event, view) is reason


def test_a_lost_flow_of_an_ipv6_client_is_made_again(view: FakeView) -> None:
    event = from_endpoint(sender=ENDPOINT_6, header=spp_header(CLIENT_6, VIP_6))
    install, send, count = decide(event, view, NOW)
    assert isinstance(install, Install)
    assert install.key == FlowKey(CLIENT_6, 2)
    assert (install.flow.endpoint, install.flow.cluster) == (ENDPOINT_6, 9)
    assert send == SendOuter(install.key, DTLS)
    assert count == Count(Reason.SLOW_RECOVERED)
