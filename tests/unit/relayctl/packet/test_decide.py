import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.flow import Flow, FlowKey, State, units
from relayctl.hints import PER_SECOND
from relayctl.packet.actions import (
    Action,
    Count,
    Event,
    FromClient,
    FromEndpoint,
    Install,
    SendInner,
    SendOuter,
)
from relayctl.packet.decide import STALE_NS, decide
from relayctl.reason import Reason
from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.route_token import Key
from tests.unit.relayctl.fake_view import FakeView
from tests.unit.relayctl.packets import (
    CLIENT,
    DTLS,
    ENDPOINT,
    OTHER_ENDPOINT,
    VIP,
    binding_request,
    rtp,
    spp_header,
    token,
)

NOW = 5_000_000_000_000
OUR_KEY = FlowKey(CLIENT, 1)
SPORT = spp.inner_port(CLIENT)


@pytest.fixture
def view() -> FakeView:
    return FakeView()


def from_client(payload: bytes, client: Address = CLIENT) -> FromClient:
    return FromClient(payload, client, 1, NOW)


def from_endpoint(
    payload: bytes = DTLS, sender: Address = ENDPOINT, header: bytes | None = None
) -> FromEndpoint:
    return FromEndpoint(spp_header() if header is None else header, payload, sender, 5107, NOW)


def reason_of(event: Event, view: FakeView) -> Reason:
    """The reason of a packet that has to be dropped."""
    [count] = decide(event, view, NOW)
    assert isinstance(count, Count)
    return count.reason


def install_live_flow(view: FakeView, endpoint: Address = ENDPOINT) -> Flow:
    prefix = token(endpoint)[:8]
    flow = Flow(endpoint, 7, SPORT, token=prefix, nexthop_in=1, nexthop_out=2, flags=1, ssrc=9)
    view.flows[OUR_KEY] = flow
    return flow


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
    assert send == SendInner(ENDPOINT, SPORT, CLIENT, 1, request)
    assert count == Count(Reason.SLOW_INSTALLED)


@pytest.mark.parametrize("payload", [binding_request(token()), DTLS, rtp(1), b"\x01\x01", b""])
def test_what_raced_its_flow_is_sent_on_and_writes_nothing(view: FakeView, payload: bytes) -> None:
    install_live_flow(view)
    assert decide(from_client(payload), view, NOW) == [
        SendInner(ENDPOINT, SPORT, CLIENT, 1, payload),
        Count(Reason.SLOW_FORWARD),
    ]


def test_another_token_of_the_same_endpoint_is_sent_on(view: FakeView) -> None:
    install_live_flow(view)
    [send, count] = decide(from_client(binding_request(token(nonce=2))), view, NOW)
    assert isinstance(send, SendInner)
    assert count == Count(Reason.SLOW_FORWARD)


def test_token_of_another_endpoint_is_not_forwarded(view: FakeView) -> None:
    install_live_flow(view)
    event = from_client(binding_request(token(OTHER_ENDPOINT)))
    assert reason_of(event, view) is Reason.SLOW_CONTENDED


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


def test_stale_packets_are_not_worth_a_look(view: FakeView) -> None:
    event = FromClient(binding_request(token()), CLIENT, 1, NOW - STALE_NS - 1)
    assert reason_of(event, view) is Reason.SLOW_STALE


def test_without_a_route_nothing_is_installed(view: FakeView) -> None:
    view.unreachable = {ENDPOINT[0]}
    assert reason_of(from_client(binding_request(token())), view) is Reason.SLOW_NO_ROUTE


def test_orphan_with_a_known_ssrc_goes_to_its_flow_under_the_new_address(view: FakeView) -> None:
    install_live_flow(view)
    view.hints.update({9: OUR_KEY})
    moved = ("198.51.100.7", 41000)
    assert decide(from_client(rtp(9), moved), view, NOW) == [
        SendInner(ENDPOINT, spp.inner_port(moved), moved, 1, rtp(9)),
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


def test_return_packet_of_a_live_flow(view: FakeView) -> None:
    install_live_flow(view)
    assert decide(from_endpoint(), view, NOW) == [
        SendOuter(CLIENT, 1, DTLS),
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
    assert send == SendOuter(CLIENT, 1, DTLS)
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
            from_endpoint(header=spp_header(("2001:db8::1", 9))), Reason.SLOW_NOT_SPP, id="six"
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


PAYLOADS = st.one_of(
    st.binary(max_size=80),
    st.binary(max_size=60).map(lambda b: b"\0\1" + b),
    st.sampled_from([token(), token(OTHER_ENDPOINT), token(cluster=8), b"x" * 24]).map(
        binding_request
    ),
    st.integers(0, 20).map(rtp),
)
HOSTS = st.sampled_from([CLIENT[0], "198.51.100.8", "10.2.0.2", "127.0.0.1", "203.0.113.10"])
ADDRESSES = st.tuples(HOSTS, st.integers(0, 65535))
TIMES = st.integers(NOW - 2 * STALE_NS, NOW + STALE_NS)
EVENTS = st.one_of(
    st.builds(FromClient, PAYLOADS, ADDRESSES, st.just(1), TIMES),
    st.builds(
        FromEndpoint,
        st.binary(max_size=38) | st.builds(spp_header, ADDRESSES),
        PAYLOADS,
        st.sampled_from([ENDPOINT, OTHER_ENDPOINT, ("10.9.0.1", 5000), ("10.2.0.1", 5100)]),
        st.integers(5100, 5115),
        TIMES,
    ),
)


def shape(actions: list[Action]) -> Iterator[str]:
    return (type(action).__name__ for action in actions)


@given(st.lists(EVENTS, max_size=12))
def test_any_sequence_of_packets_counts_one_reason_each(events: list[Event]) -> None:
    view = FakeView()
    view.hints.update({3: OUR_KEY})
    allowed = {
        ("Count",),
        *(
            (*before, send, "Count")
            for before, send in itertools.product([(), ("Install",)], ["SendInner", "SendOuter"])
        ),
    }
    for event in events:
        actions = decide(event, view, NOW)
        assert tuple(shape(actions)) in allowed
        for action in actions:
            if isinstance(action, Install):
                known = view.flows.get(action.key)
                assert known is None or known.endpoint == action.flow.endpoint
                view.flows[action.key] = action.flow
            if isinstance(action, SendInner):
                assert view.owner(action.endpoint) == 7
