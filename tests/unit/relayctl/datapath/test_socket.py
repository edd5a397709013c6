import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.datapath.socket import MemoryFlows, SocketDatapath
from relayctl.flow import Flow, FlowKey, State
from relayctl.packet.actions import FromClient, FromEndpoint, SendInner, SendOuter
from relayctl.packet.view import address_policy
from relayctl.reason import PUNTS, Reason
from relayctl.wire.address import Address
from tests.unit.relayctl.packets import (
    CLIENT,
    DTLS,
    ENDPOINT,
    OTHER_ENDPOINT,
    VIP,
    binding_request,
    config,
    rtp,
    spp_header,
    token,
)

KEY = FlowKey(CLIENT, 1)
REQUEST = binding_request(token())


@pytest.fixture
def datapath() -> SocketDatapath:
    return SocketDatapath(2, {VIP: 1}, address_policy(config()))


def install(datapath: SocketDatapath) -> None:
    assert datapath.flows.install(KEY, Flow(ENDPOINT, 7, 5107, born=10))


def flow(datapath: SocketDatapath) -> Flow:
    found = datapath.flows.get(KEY)
    assert found
    return found


def from_client(payload: bytes, client: Address = CLIENT) -> FromClient:
    return FromClient(payload, client, 1, 0)


def from_endpoint(
    payload: bytes = DTLS, sender: Address = ENDPOINT, header: bytes | None = None
) -> FromEndpoint:
    return FromEndpoint(spp_header() if header is None else header, payload, sender, 5107, 0)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        pytest.param(from_client(REQUEST), Reason.PUNT_FIRST, id="request"),
        pytest.param(from_client(DTLS), Reason.PUNT_ORPHAN, id="dtls"),
        pytest.param(from_client(rtp(1)), Reason.PUNT_ORPHAN, id="rtp"),
        pytest.param(from_client(REQUEST[:-4]), Reason.DROP_NO_FLOW, id="cut"),
        pytest.param(from_client(REQUEST[:4] + bytes(30)), Reason.DROP_NO_FLOW, id="no_cookie"),
        pytest.param(from_client(b""), Reason.DROP_NO_FLOW, id="empty"),
        pytest.param(from_client(b"\x40"), Reason.DROP_NO_FLOW, id="channel"),
        pytest.param(from_client(REQUEST, ("10.2.0.9", 1)), Reason.DROP_BAD_SOURCE, id="inside"),
        pytest.param(from_endpoint(), Reason.PUNT_RETURN, id="unknown_flow"),
        pytest.param(from_endpoint(b""), Reason.DROP_NOT_SPP, id="no_payload"),
        pytest.param(from_endpoint(header=b"\x16" * 38), Reason.DROP_NOT_SPP, id="no_spp"),
        pytest.param(
            from_endpoint(header=spp_header(("2001:db8::1", 9))), Reason.DROP_NOT_SPP, id="six"
        ),
        pytest.param(
            from_endpoint(header=spp_header(vip=("203.0.113.10", 3479))),
            Reason.DROP_FOREIGN_VIP,
            id="vip",
        ),
        pytest.param(
            from_endpoint(sender=("10.3.0.2", 5000)), Reason.DROP_NOT_AN_ENDPOINT, id="outside"
        ),
    ],
)
def test_without_a_flow(
    datapath: SocketDatapath, event: FromClient | FromEndpoint, reason: Reason
) -> None:
    assert datapath.forward(event, 20) == (reason, None)
    assert datapath.reasons() == {reason: 1}


def test_a_client_packet_goes_to_its_endpoint_and_is_counted(datapath: SocketDatapath) -> None:
    install(datapath)
    verdict = datapath.forward(from_client(DTLS), 20)
    assert verdict == (Reason.FORWARD, SendInner(ENDPOINT, 5107, CLIENT, 1, DTLS))
    assert flow(datapath) == Flow(
        ENDPOINT, 7, 5107, born=10, seen_up=20, packets_up=1, bytes_up=len(DTLS)
    )


def test_the_first_rtp_packet_gives_the_flow_its_ssrc(datapath: SocketDatapath) -> None:
    install(datapath)
    for payload in (b"\x80\xc8" + bytes(20), rtp(9), rtp(10)):
        datapath.forward(from_client(payload), 20)
    assert flow(datapath).ssrc == 9


def test_an_endpoint_packet_goes_to_its_client(datapath: SocketDatapath) -> None:
    install(datapath)
    verdict = datapath.forward(from_endpoint(), 21)
    assert verdict == (Reason.RETURN, SendOuter(CLIENT, 1, DTLS))
    assert flow(datapath).seen_down == 21
    assert (flow(datapath).packets_down, flow(datapath).bytes_down) == (1, len(DTLS))


@pytest.mark.parametrize(
    ("payload", "state"),
    [(REQUEST, State.NEW), (b"\x13", State.NEW), (b"\x14", State.CONFIRMED), (DTLS, "confirmed")],
)
def test_the_first_answer_that_is_not_stun_confirms(
    datapath: SocketDatapath, payload: bytes, state: State
) -> None:
    install(datapath)
    datapath.forward(from_endpoint(payload), 21)
    assert flow(datapath).state == state


def test_another_endpoint_changes_nothing(datapath: SocketDatapath) -> None:
    install(datapath)
    before = flow(datapath)
    verdict = datapath.forward(from_endpoint(sender=OTHER_ENDPOINT), 21)
    assert verdict == (Reason.PUNT_RETURN, None)
    assert flow(datapath) == before


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


def test_reasons_of_both_counters_stand_together(datapath: SocketDatapath) -> None:
    datapath.count(Reason.DROP_WRONG_SIDE)
    datapath.write_slow_reasons({Reason.SLOW_ORPHAN: 3})
    assert datapath.reasons() == {Reason.DROP_WRONG_SIDE: 1, Reason.SLOW_ORPHAN: 3}


HEADERS = st.binary(max_size=38) | st.just(spp_header())
EVENTS = st.one_of(
    st.builds(FromClient, st.binary(max_size=60), st.just(CLIENT), st.just(1), st.just(0)),
    st.builds(
        FromEndpoint, HEADERS, st.binary(max_size=60), st.just(ENDPOINT), st.just(5107), st.just(0)
    ),
)


@given(EVENTS, st.booleans())
def test_any_packet_counts_one_reason_and_is_sent_exactly_on_a_hit(
    event: FromClient | FromEndpoint, has_flow: bool
) -> None:
    datapath = SocketDatapath(2, {VIP: 1}, address_policy(config()))
    if has_flow:
        install(datapath)
    reason, action = datapath.forward(event, 20)
    assert datapath.reasons() == {reason: 1}
    assert (action is not None) == (reason in (Reason.FORWARD, Reason.RETURN))
    assert reason in PUNTS or reason.name.startswith("DROP") or action is not None
