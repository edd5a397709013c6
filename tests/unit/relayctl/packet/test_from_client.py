import pytest

from relayctl.flow import Flow, FlowKey, units
from relayctl.hints import PER_SECOND
from relayctl.packet.actions import Count, Install, SendInner, SendTransparent
from relayctl.packet.decide import decide
from relayctl.reason import Reason
from relayctl.wire import spp
from relayctl.wire.address import Address, pack
from relayctl.wire.route_token import Key
from tests.unit.relayctl.fake_view import FakeView
from tests.unit.relayctl.packet.events import (
    NOW,
    OUR_KEY,
    SPORT,
    from_client,
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
    VIP,
    VIP_6,
    binding_request,
    rtp,
    token,
)


@pytest.fixture
def view() -> FakeView:
    return FakeView()


def test_authentic_first_packet_installs_and_is_sent_on(view: FakeView) -> None:
    request = binding_request(token())
    install, send, count = decide(from_client(request), view, NOW)
    assert install == Install(
        OUR_KEY,
        Flow(
            ENDPOINT,
            7,
            SPORT,
            token=token()[:8],
            nexthop_in=1,
            nexthop_out=2,
            seen_up=units(NOW),
            born=units(NOW),
            packets_up=1,
            bytes_up=len(request),
        ),
    )
    assert send == SendInner(ENDPOINT, SPORT, OUR_KEY, request)
    assert count == Count(Reason.SLOW_INSTALLED)


@pytest.mark.parametrize("payload", [binding_request(token()), DTLS, rtp(1), b"\x01\x01", b""])
def test_what_raced_its_flow_is_sent_on_and_writes_nothing(view: FakeView, payload: bytes) -> None:
    install_live_flow(view)
    assert decide(from_client(payload), view, NOW) == [
        SendInner(ENDPOINT, SPORT, OUR_KEY, payload),
        Count(Reason.SLOW_FORWARD),
    ]


def test_another_token_of_the_same_endpoint_is_sent_on(view: FakeView) -> None:
    install_live_flow(view)
    [send, count] = decide(from_client(binding_request(token(nonce=2))), view, NOW)
    assert isinstance(send, SendInner)
    assert count == Count(Reason.SLOW_FORWARD)


@pytest.mark.parametrize(
    ("ufrag", "reason"),
    [
        pytest.param(token()[:-1] + b"A", Reason.SLOW_FORGED, id="forged"),
        pytest.param(token(key=Key(2, bytes(32))), Reason.SLOW_UNKNOWN_KEY, id="unknown_key"),
        pytest.param(token(cluster=8), Reason.SLOW_UNKNOWN_CLUSTER, id="unknown_cluster"),
        pytest.param(token(("10.3.0.2", 5000)), Reason.SLOW_NOT_ALLOWED, id="outside"),
        pytest.param(token(("10.2.0.2", 80)), Reason.SLOW_NOT_ALLOWED, id="port"),
        pytest.param(token(("10.2.0.1", 5100)), Reason.SLOW_NOT_ALLOWED, id="ourselves"),
        pytest.param(token()[:-1], Reason.SLOW_BAD_USERNAME, id="short"),
        pytest.param(token() + b"A", Reason.SLOW_BAD_USERNAME, id="long"),
        pytest.param(b"AAAA" + token()[4:], Reason.SLOW_BAD_USERNAME, id="version"),
        pytest.param(b"!" * 24, Reason.SLOW_BAD_USERNAME, id="no_ice_chars"),
    ],
)
@pytest.mark.parametrize("has_flow", [False, True])
def test_hostile_tokens(view: FakeView, ufrag: bytes, reason: Reason, has_flow: bool) -> None:
    if has_flow:
        install_live_flow(view, OTHER_ENDPOINT)
    assert reason_of(from_client(binding_request(ufrag)), view) is reason


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        pytest.param(binding_request(token())[:-4], Reason.SLOW_MALFORMED, id="cut"),
        pytest.param(b"\0\1\0\0" + bytes(16), Reason.SLOW_MALFORMED, id="no_cookie"),
        pytest.param(b"\0\1\0\0\x21\x12\xa4\x42" + bytes(12), Reason.SLOW_BAD_USERNAME, id="bare"),
        pytest.param(binding_request(token(), kind=0x0101), Reason.SLOW_NO_FLOW, id="response"),
        pytest.param(b"\0\1", Reason.SLOW_NO_FLOW, id="tiny"),
        pytest.param(b"", Reason.SLOW_NO_FLOW, id="empty"),
        pytest.param(b"\x40hello", Reason.SLOW_NO_FLOW, id="channel"),
        pytest.param(DTLS, Reason.SLOW_ORPHAN, id="dtls"),
        pytest.param(rtp(1), Reason.SLOW_ORPHAN, id="rtp"),
        pytest.param(b"\x80\xc8" + bytes(20), Reason.SLOW_ORPHAN, id="rtcp"),
    ],
)
def test_packets_that_open_no_flow(view: FakeView, payload: bytes, reason: Reason) -> None:
    assert reason_of(from_client(payload), view) is reason


@pytest.mark.parametrize("client", [("10.2.0.9", 4000), VIP, ("127.0.0.1", 4000), (CLIENT[0], 0)])
def test_addresses_that_no_client_has(view: FakeView, client: Address) -> None:
    event = from_client(binding_request(token()), client)
    assert reason_of(event, view) is Reason.SLOW_BAD_SOURCE


def test_without_a_route_nothing_is_installed(view: FakeView) -> None:
    view.unreachable = {ENDPOINT[0]}
    assert reason_of(from_client(binding_request(token())), view) is Reason.SLOW_NO_ROUTE


def test_orphan_with_a_known_ssrc_goes_to_its_flow_under_the_new_address(view: FakeView) -> None:
    install_live_flow(view)
    view.hints.update({9: OUR_KEY})
    moved = ("198.51.100.7", 41000)
    assert decide(from_client(rtp(9), moved), view, NOW) == [
        SendInner(ENDPOINT, spp.inner_port(pack(moved)), FlowKey(moved, 1), rtp(9)),
        Count(Reason.SLOW_HINT),
    ]


def test_hints_have_a_budget(view: FakeView) -> None:
    install_live_flow(view)
    view.hints.update({9: OUR_KEY})
    event = from_client(rtp(9), ("198.51.100.7", 41000))
    reasons = [decide(event, view, NOW)[-1] for _ in range(PER_SECOND + 1)]
    assert reasons == [Count(Reason.SLOW_HINT)] * PER_SECOND + [Count(Reason.SLOW_HINT_BUDGET)]


def test_hint_of_a_flow_that_ended_leads_nowhere(view: FakeView) -> None:
    view.hints.update({9: OUR_KEY})
    event = from_client(rtp(9), ("198.51.100.7", 41000))
    assert reason_of(event, view) is Reason.SLOW_ORPHAN


def test_hint_of_a_flow_with_another_ssrc_leads_nowhere(view: FakeView) -> None:
    install_live_flow(view)
    view.hints.update({10: OUR_KEY})
    event = from_client(rtp(10), ("198.51.100.7", 41000))
    assert reason_of(event, view) is Reason.SLOW_ORPHAN


@pytest.mark.parametrize(
    ("client", "vip", "endpoint", "cluster"),
    [
        pytest.param(CLIENT_6, 2, ENDPOINT_6, 9, id="six_to_six"),
        pytest.param(CLIENT_6, 2, ENDPOINT, 7, id="six_to_four"),
        pytest.param(CLIENT, 1, ENDPOINT_6, 9, id="four_to_six"),
    ],
)
def test_families_of_client_and_endpoint_do_not_matter(
    view: FakeView, client: Address, vip: int, endpoint: Address, cluster: int
) -> None:
    request = binding_request(token(endpoint, cluster=cluster))
    install, send, _ = decide(from_client(request, client, vip), view, NOW)
    assert isinstance(install, Install)
    assert install.key == FlowKey(client, vip)
    assert (install.flow.endpoint, install.flow.cluster) == (endpoint, cluster)
    assert (install.flow.nexthop_in, install.flow.nexthop_out) == (1, 2)
    assert send == SendInner(endpoint, spp.inner_port(pack(client)), install.key, request)


@pytest.mark.parametrize("host", ["fe80::1", "::1", "::", "ff02::1", "fd00:2::9", VIP_6[0]])
def test_ipv6_addresses_that_no_client_has(view: FakeView, host: str) -> None:
    event = from_client(binding_request(token()), (host, 4000), 2)
    assert reason_of(event, view) is Reason.SLOW_BAD_SOURCE


def test_transparent_mode_sends_in_the_name_of_the_client() -> None:
    view = FakeView(transparent=True)
    request = binding_request(token())
    install, send, count = decide(from_client(request), view, NOW)
    assert isinstance(install, Install)
    assert install.flow.sport == 0
    assert send == SendTransparent(ENDPOINT, OUR_KEY, request)
    assert count == Count(Reason.SLOW_INSTALLED)


def test_transparent_mode_has_no_takeover() -> None:
    view = FakeView(transparent=True)
    install_live_flow(view)
    event = from_client(binding_request(token(OTHER_ENDPOINT)))
    assert reason_of(event, view) is Reason.SLOW_NOT_OWNER
    assert not len(view.pending)


def test_transparent_mode_does_not_mix_families() -> None:
    view = FakeView(transparent=True)
    event = from_client(binding_request(token(ENDPOINT_6, cluster=9)))
    assert reason_of(event, view) is Reason.SLOW_NO_ROUTE
    event = from_client(binding_request(token(ENDPOINT_6, cluster=9)), CLIENT_6, 2)
    assert decide(event, view, NOW)[-1] == Count(Reason.SLOW_INSTALLED)


def test_a_flows_own_token_outlives_its_key(view: FakeView) -> None:
    install_live_flow(view)
    view.keys.clear()
    event = from_client(binding_request(token()))
    assert decide(event, view, NOW)[-1] == Count(Reason.SLOW_FORWARD)
