import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.datapath.budgets import KERNEL, Budgets
from relayctl.datapath.socket import ALIVE_FOR, ANSWERS, CONTENDED_FOR, SocketDatapath
from relayctl.flow import Flow, FlowKey, State
from relayctl.packet.actions import FromClient, FromEndpoint, SendInner, SendOuter
from relayctl.packet.view import address_policy
from relayctl.reason import PUNTS, Reason
from relayctl.wire.address import Address
from relayctl.wire.route_token import Key
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
    binding_response,
    config,
    rtp,
    spp_header,
    token,
)
from tests.unit.relayctl.packets import KEY as ROUTE_KEY

KEY = FlowKey(CLIENT, 1)
KEY_6 = FlowKey(CLIENT_6, 2)
REQUEST = binding_request(token())
WANTS = binding_request(token(OTHER_ENDPOINT))
ANSWER = binding_response(b"x" * 12)
CONFIG = config(
    inner_address=["10.2.0.1", "fd00:2::1"],
    vip=[
        {"id": 1, "public": "203.0.113.10:3478"},
        {"id": 2, "public": "[2001:db8:10::10]:3478"},
    ],
    cluster=[
        {"id": 7, "allow": ["10.2.0.0/24"]},
        {"id": 9, "prefix": "fd00:2::/96", "allow": ["fd00:2::/112"]},
    ],
)


TOKEN = token()[:8]


def alive_datapath(budgets: Budgets | None = None) -> SocketDatapath:
    found = SocketDatapath(2, {VIP: 1, VIP_6: 2}, address_policy(CONFIG), budgets)
    found.write_keys({1: ROUTE_KEY})
    found.beat(20)
    return found


@pytest.fixture
def datapath() -> SocketDatapath:
    return alive_datapath()


def install(datapath: SocketDatapath, key: FlowKey = KEY, endpoint: Address = ENDPOINT) -> None:
    assert datapath.flows.install(key, Flow(endpoint, 7, 5107, TOKEN, born=10))


def flow(datapath: SocketDatapath) -> Flow:
    found = datapath.flows.get(KEY)
    assert found
    return found


def from_client(payload: bytes, client: Address = CLIENT, vip: int = 1) -> FromClient:
    return FromClient(payload, FlowKey(client, vip), 0)


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
        pytest.param(from_client(REQUEST, CLIENT_6, 2), Reason.PUNT_FIRST, id="request_6"),
        pytest.param(
            from_client(REQUEST, ("::ffff:198.51.100.7", 9), 2), Reason.DROP_BAD_SOURCE, id="mapped"
        ),
        pytest.param(
            from_client(REQUEST, ("fd00:2::9", 9), 2), Reason.DROP_BAD_SOURCE, id="inside_6"
        ),
        pytest.param(from_client(binding_request(b"x" * 24)), Reason.DROP_STUN_SHAPE, id="version"),
        pytest.param(
            from_client(binding_request(token()[:-1])), Reason.DROP_STUN_SHAPE, id="short"
        ),
        pytest.param(
            from_client(binding_request(token()[:-1] + b"!")), Reason.DROP_STUN_SHAPE, id="no_ice"
        ),
        pytest.param(
            from_client(binding_response(b"x" * 12, kind=1)), Reason.DROP_STUN_SHAPE, id="bare"
        ),
        pytest.param(
            from_client(binding_request(token(key=Key(2, bytes(32))))),
            Reason.DROP_UNKNOWN_KEY,
            id="key",
        ),
        pytest.param(
            from_client(binding_request(token()[:-1] + b"A")), Reason.DROP_FORGED, id="forged"
        ),
        pytest.param(
            from_client(binding_request(token(cluster=8))), Reason.PUNT_FIRST, id="cluster"
        ),
        pytest.param(from_endpoint(), Reason.PUNT_RETURN, id="unknown_flow"),
        pytest.param(from_endpoint(b""), Reason.DROP_NOT_SPP, id="no_payload"),
        pytest.param(from_endpoint(header=b"\x16" * 38), Reason.DROP_NOT_SPP, id="no_spp"),
        pytest.param(
            from_endpoint(header=spp_header(("2001:db8::1", 9))), Reason.DROP_NOT_SPP, id="six"
        ),
        pytest.param(
            from_endpoint(header=spp_header(CLIENT, VIP_6)), Reason.DROP_NOT_SPP, id="families"
        ),
        pytest.param(
            from_endpoint(header=spp_header(CLIENT_6, VIP_6)), Reason.PUNT_RETURN, id="unknown_6"
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
    assert verdict == (Reason.FORWARD, SendInner(ENDPOINT, 5107, KEY, DTLS))
    assert flow(datapath) == Flow(
        ENDPOINT, 7, 5107, TOKEN, born=10, seen_up=20, packets_up=1, bytes_up=len(DTLS)
    )


def test_the_first_rtp_packet_gives_the_flow_its_ssrc(datapath: SocketDatapath) -> None:
    install(datapath)
    for payload in (b"\x80\xc8" + bytes(20), rtp(9), rtp(10)):
        datapath.forward(from_client(payload), 20)
    assert flow(datapath).ssrc == 9


def test_an_endpoint_packet_goes_to_its_client(datapath: SocketDatapath) -> None:
    install(datapath)
    verdict = datapath.forward(from_endpoint(), 21)
    assert verdict == (Reason.RETURN, SendOuter(KEY, DTLS))
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


def test_legs_of_two_families(datapath: SocketDatapath) -> None:
    install(datapath, KEY_6, ENDPOINT_6)
    up = datapath.forward(from_client(DTLS, CLIENT_6, 2), 20)
    assert up == (Reason.FORWARD, SendInner(ENDPOINT_6, 5107, KEY_6, DTLS))
    down = datapath.forward(from_endpoint(DTLS, ENDPOINT_6, spp_header(CLIENT_6, VIP_6)), 20)
    assert down == (Reason.RETURN, SendOuter(KEY_6, DTLS))


def test_the_source_of_a_live_flow_is_not_looked_at(datapath: SocketDatapath) -> None:
    inside = FlowKey(("10.2.0.9", 9), 1)
    install(datapath, inside)
    reason, _ = datapath.forward(from_client(DTLS, inside.client), 20)
    assert reason is Reason.FORWARD


def test_another_token_of_the_endpoint_is_kept_and_followed(datapath: SocketDatapath) -> None:
    install(datapath)
    other = token(nonce=2)
    reason, action = datapath.forward(from_client(binding_request(other)), 20)
    assert (reason, type(action)) == (Reason.FORWARD, SendInner)
    assert flow(datapath).token == other[:8]
    assert flow(datapath).packets_up == 1


def test_the_flows_own_token_is_not_opened(datapath: SocketDatapath) -> None:
    install(datapath)
    datapath.write_keys({})
    reason, _ = datapath.forward(from_client(REQUEST), 20)
    assert reason is Reason.FORWARD


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (binding_request(b"x" * 24), Reason.DROP_STUN_SHAPE),
        (binding_response(b"x" * 12, kind=1), Reason.DROP_STUN_SHAPE),
        (binding_request(token(key=Key(2, bytes(32)))), Reason.DROP_UNKNOWN_KEY),
        (binding_request(WANTS[24:47] + b"A"), Reason.DROP_FORGED),
    ],
)
def test_a_request_without_an_authentic_token_does_not_follow_the_flow(
    datapath: SocketDatapath, request_: bytes, reason: Reason
) -> None:
    install(datapath)
    before = flow(datapath)
    assert datapath.forward(from_client(request_), 20) == (reason, None)
    assert flow(datapath) == before


def test_a_token_of_another_endpoint_marks_the_flow_and_changes_nothing_else(
    datapath: SocketDatapath,
) -> None:
    install(datapath)
    before = flow(datapath)
    assert datapath.forward(from_client(WANTS), 20) == (Reason.PUNT_CONTENDED, None)
    assert flow(datapath) == before._replace(contended=20)


def test_beyond_its_budget_a_token_marks_no_flow(datapath: SocketDatapath) -> None:
    install(datapath)
    reasons = [datapath.forward(from_client(WANTS), 20)[0] for _ in range(16)]
    assert reasons == [Reason.PUNT_CONTENDED] * 16
    datapath.flows.delete(KEY)
    install(datapath)
    assert datapath.forward(from_client(WANTS), 20) == (Reason.DROP_TOKEN_BUDGET, None)
    assert flow(datapath).contended == 0


def test_answers_of_a_contended_flow_are_handed_up_within_limits(datapath: SocketDatapath) -> None:
    install(datapath)
    assert datapath.forward(from_client(ANSWER), 20)[0] is Reason.FORWARD
    datapath.forward(from_client(WANTS), 20)
    reasons = [datapath.forward(from_client(ANSWER), 21)[0] for _ in range(ANSWERS + 1)]
    assert reasons == [Reason.PUNT_ANSWER] * ANSWERS + [Reason.FORWARD]
    assert flow(datapath).answers == 21 << 8 | ANSWERS
    assert flow(datapath).packets_up == ANSWERS + 2  # answers are the client's packets too
    assert datapath.forward(from_client(ANSWER), 22)[0] is Reason.PUNT_ANSWER
    assert flow(datapath).answers == 22 << 8 | 1


def test_answers_are_handed_up_for_five_units(datapath: SocketDatapath) -> None:
    install(datapath)
    datapath.forward(from_client(WANTS), 20)
    datapath.beat(20 + CONTENDED_FOR)
    assert datapath.forward(from_client(ANSWER), 20 + CONTENDED_FOR)[0] is Reason.PUNT_ANSWER
    assert datapath.forward(from_client(ANSWER), 21 + CONTENDED_FOR)[0] is Reason.FORWARD


@pytest.mark.parametrize(
    "payload", [binding_response(b"x" * 12, kind=0x0111), ANSWER[:-1], ANSWER[:-4], DTLS, REQUEST]
)
def test_only_whole_success_responses_are_answers(datapath: SocketDatapath, payload: bytes) -> None:
    install(datapath)
    datapath.forward(from_client(WANTS), 20)
    assert datapath.forward(from_client(payload), 20)[0] is Reason.FORWARD


def test_without_a_packet_process_nothing_is_handed_up(datapath: SocketDatapath) -> None:
    install(datapath)
    late = 20 + ALIVE_FOR + 1
    datapath.forward(from_client(WANTS), 20)
    before = flow(datapath)
    other = ("198.51.100.7", 9)
    for event in (
        from_client(REQUEST, other),
        from_client(DTLS, other),
        from_client(WANTS),
        from_endpoint(sender=OTHER_ENDPOINT),
    ):
        assert datapath.forward(event, late - 1)[0] in PUNTS
        assert datapath.forward(event, late) == (Reason.DROP_NO_DAEMON, None)
    assert flow(datapath) == before._replace(contended=late - 1)
    assert datapath.forward(from_client(ANSWER), late)[0] is Reason.FORWARD
    assert datapath.forward(from_endpoint(), late)[0] is Reason.RETURN


def test_shares_of_token_client_and_endpoint(datapath: SocketDatapath) -> None:
    sources = [("198.51.100.7", port) for port in range(1, 18)]
    reasons = [datapath.forward(from_client(REQUEST, source), 20)[0] for source in sources]
    assert reasons == [Reason.PUNT_FIRST] * 16 + [Reason.DROP_TOKEN_BUDGET]
    reasons = [datapath.forward(from_client(DTLS, source), 20)[0] for source in sources * 4]
    assert reasons == [Reason.PUNT_ORPHAN] * 64 + [Reason.DROP_ORPHAN_CLIENT_BUDGET] * 4
    reasons = [datapath.forward(from_endpoint(), 20)[0] for _ in range(2001)]
    assert reasons == [Reason.PUNT_RETURN] * 2000 + [Reason.DROP_RETURN_BUDGET]


def test_it_counts_like_a_cpu_when_asked() -> None:
    datapath = alive_datapath(Budgets(KERNEL))
    clients = [(f"198.51.{number >> 8}.{number & 255}", 9) for number in range(2001)]
    reasons = [datapath.forward(from_client(DTLS, client), 20)[0] for client in clients]
    assert reasons == [Reason.PUNT_ORPHAN] * 2000 + [Reason.DROP_ORPHAN_BUDGET]


def test_reasons_of_both_counters_stand_together(datapath: SocketDatapath) -> None:
    datapath.count(Reason.DROP_WRONG_SIDE)
    datapath.write_slow_reasons({Reason.SLOW_ORPHAN: 3})
    assert datapath.reasons() == {Reason.DROP_WRONG_SIDE: 1, Reason.SLOW_ORPHAN: 3}


HEADERS = st.binary(max_size=38) | st.sampled_from(
    [spp_header(client, vip) for client in (CLIENT, CLIENT_6) for vip in (VIP, VIP_6)]
)
PAYLOADS = st.binary(max_size=60) | st.sampled_from([REQUEST, WANTS, ANSWER, REQUEST[:-4]])
EVENTS = st.one_of(
    st.builds(FromClient, PAYLOADS, st.just(KEY), st.just(0)),
    st.builds(FromClient, PAYLOADS, st.just(KEY_6), st.just(0)),
    st.builds(
        *(FromEndpoint, HEADERS, PAYLOADS),
        *(st.sampled_from([ENDPOINT, OTHER_ENDPOINT, ENDPOINT_6]), st.just(5107), st.just(0)),
    ),
)


@given(st.lists(st.tuples(EVENTS, st.integers(18, 30)), max_size=8), st.booleans())
def test_any_packet_counts_one_reason_and_is_sent_exactly_on_a_hit(
    events: list[tuple[FromClient | FromEndpoint, int]], has_flow: bool
) -> None:
    datapath = alive_datapath()
    if has_flow:
        install(datapath)
        install(datapath, KEY_6, ENDPOINT_6)
    for number, (event, stamp) in enumerate(events, 1):
        reason, action = datapath.forward(event, stamp)
        assert sum(datapath.reasons().values()) == number
        assert (action is not None) == (reason in (Reason.FORWARD, Reason.RETURN))
        assert reason in PUNTS or reason.name.startswith("DROP") or action is not None
