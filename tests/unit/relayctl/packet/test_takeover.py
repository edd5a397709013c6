"""Takeovers, alone and as decisions carry them out."""

import random

import pytest

from relayctl.flow import FlowKey, State, units
from relayctl.packet.actions import Count, Install, SendInner, SendOuter
from relayctl.packet.decide import decide
from relayctl.packet.takeover import CAPACITY, CHECKS, LIFE_NS, Takeovers, Target
from relayctl.reason import Reason
from tests.unit.relayctl.fake_view import FakeView
from tests.unit.relayctl.packet.events import (
    NOW,
    OUR_KEY,
    SPORT,
    carry_out,
    from_client,
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
    binding_request,
    binding_response,
    rtp,
    spp_header,
    token,
)

WANTS = binding_request(token(OTHER_ENDPOINT))
CHECK_ID = b"twelve bytes"
CHECK = binding_request(b"client-ufrag", transaction=CHECK_ID)


@pytest.fixture
def view() -> FakeView:
    found = FakeView()
    install_live_flow(found)
    return found


def test_the_request_goes_to_the_other_endpoint_and_the_flow_stays(view: FakeView) -> None:
    before = dict(view.flows)
    assert decide(from_client(WANTS), view, NOW) == [
        SendInner(OTHER_ENDPOINT, SPORT, OUR_KEY, WANTS),
        Count(Reason.SLOW_TAKEOVER),
    ]
    assert view.flows == before
    assert list(view.pending) == [OUR_KEY]


def test_an_honest_client_takes_its_address_over(view: FakeView) -> None:
    decide(from_client(WANTS), view, NOW)
    assert decide(from_endpoint(CHECK, OTHER_ENDPOINT), view, NOW) == [
        SendOuter(OUR_KEY, CHECK),
        Count(Reason.SLOW_TAKEOVER_CHECK),
    ]
    answer = binding_response(CHECK_ID)
    install, send, count = decide(from_client(answer), view, NOW)
    assert isinstance(install, Install)
    flow = install.flow
    assert install.key == OUR_KEY
    assert (flow.endpoint, flow.cluster, flow.sport) == (OTHER_ENDPOINT, 7, SPORT)
    assert flow.token == token(OTHER_ENDPOINT)[:8]
    assert flow.state is State.NEW
    assert (flow.nexthop_in, flow.nexthop_out, flow.ssrc) == (1, 2, 0)
    assert (flow.born, flow.seen_up, flow.seen_down) == (units(NOW), units(NOW), 0)
    assert (flow.packets_up, flow.bytes_up, flow.contended, flow.answers) == (0, 0, 0, 0)
    assert send == SendInner(OTHER_ENDPOINT, SPORT, OUR_KEY, answer)
    assert count == Count(Reason.SLOW_REPOINTED)
    assert not len(view.pending)


def test_it_works_between_families_and_vips(view: FakeView) -> None:
    first = binding_request(token(ENDPOINT))
    assert carry_out(from_client(first, CLIENT_6, 2), view) is Reason.SLOW_INSTALLED
    wants = binding_request(token(ENDPOINT_6, cluster=9))
    assert carry_out(from_client(wants, CLIENT_6, 2), view) is Reason.SLOW_TAKEOVER
    assert carry_out(from_client(wants, CLIENT, 1), view) is Reason.SLOW_TAKEOVER
    check = from_endpoint(CHECK, ENDPOINT_6, spp_header(CLIENT_6, VIP_6))
    assert carry_out(check, view) is Reason.SLOW_TAKEOVER_CHECK
    answer = binding_response(CHECK_ID)
    assert carry_out(from_client(answer, CLIENT, 1), view) is Reason.SLOW_FORWARD
    assert carry_out(from_client(answer, CLIENT_6, 2), view) is Reason.SLOW_REPOINTED
    assert view.flows[OUR_KEY].endpoint == ENDPOINT
    moved = view.flows[FlowKey(CLIENT_6, 2)]
    assert (moved.endpoint, moved.cluster) == (ENDPOINT_6, 9)


def test_an_error_response_proves_nothing(view: FakeView) -> None:
    """A browser answers the check of a stranger, with 401."""
    decide(from_client(WANTS), view, NOW)
    decide(from_endpoint(CHECK, OTHER_ENDPOINT), view, NOW)
    answer = binding_response(CHECK_ID, kind=0x0111)
    assert decide(from_client(answer), view, NOW) == [
        SendInner(ENDPOINT, SPORT, OUR_KEY, answer),
        Count(Reason.SLOW_FORWARD),
    ]


def test_whoever_only_sends_in_the_name_of_the_client_never_gets_the_flow(view: FakeView) -> None:
    """Authentic tokens, the ids of the thief's own requests, and guesses; the victim is there and
    refuses each check that it sees."""
    source = random.Random(1)
    before = view.flows[OUR_KEY]
    for attempt in range(1000):
        own = source.randbytes(12)
        wants = binding_request(token(OTHER_ENDPOINT, nonce=attempt), transaction=own)
        assert carry_out(from_client(wants), view) is Reason.SLOW_TAKEOVER
        check = source.randbytes(12)
        event = from_endpoint(binding_request(b"ufrag", transaction=check), OTHER_ENDPOINT)
        assert carry_out(event, view) is Reason.SLOW_TAKEOVER_CHECK
        answered = from_endpoint(binding_response(own), OTHER_ENDPOINT)
        assert carry_out(answered, view) is Reason.SLOW_TAKEOVER_CHECK
        guess = bytes([check[0] ^ 1]) + check[1:]
        for proof in (own, guess, source.randbytes(12), bytes(12)):
            assert carry_out(from_client(binding_response(proof)), view) is Reason.SLOW_FORWARD
        refused = binding_response(check, kind=0x0111)
        assert carry_out(from_client(refused), view) is Reason.SLOW_FORWARD
    assert view.flows[OUR_KEY] == before


@pytest.mark.parametrize("payload", [DTLS, rtp(1), b"\x40hello", b"\x80\xc8" + bytes(20)])
def test_the_other_endpoint_may_only_check(view: FakeView, payload: bytes) -> None:
    decide(from_client(WANTS), view, NOW)
    assert reason_of(from_endpoint(payload, OTHER_ENDPOINT), view) is Reason.SLOW_NOT_OWNER


@pytest.mark.parametrize("payload", [CHECK, binding_response(CHECK_ID), DTLS])
def test_nobody_else_passes(view: FakeView, payload: bytes) -> None:
    before = dict(view.flows)
    event = from_endpoint(payload, OTHER_ENDPOINT)
    assert reason_of(event, view) is Reason.SLOW_NOT_OWNER
    decide(from_client(binding_request(token(("10.2.0.4", 5000)))), view, NOW)
    assert reason_of(event, view) is Reason.SLOW_NOT_OWNER
    assert view.flows == before


def test_only_the_ids_of_requests_count(view: FakeView) -> None:
    decide(from_client(WANTS), view, NOW)
    decide(from_endpoint(binding_response(CHECK_ID), OTHER_ENDPOINT), view, NOW)
    assert carry_out(from_client(binding_response(CHECK_ID)), view) is Reason.SLOW_FORWARD


def test_a_takeover_has_five_seconds(view: FakeView) -> None:
    decide(from_client(WANTS), view, NOW)
    decide(from_endpoint(CHECK, OTHER_ENDPOINT), view, NOW)
    answer = from_client(binding_response(CHECK_ID))
    assert carry_out(answer, view, NOW + LIFE_NS) is Reason.SLOW_FORWARD
    late = from_endpoint(CHECK, OTHER_ENDPOINT)
    assert carry_out(late, view, NOW + LIFE_NS) is Reason.SLOW_NOT_OWNER
    assert not len(view.pending)


def test_a_repeated_request_keeps_the_checks_and_renews_the_time(view: FakeView) -> None:
    decide(from_client(WANTS), view, NOW)
    decide(from_endpoint(CHECK, OTHER_ENDPOINT), view, NOW)
    carry_out(from_client(WANTS), view, NOW + LIFE_NS - 1)
    answer = from_client(binding_response(CHECK_ID))
    assert carry_out(answer, view, NOW + LIFE_NS + 1) is Reason.SLOW_REPOINTED


def test_without_a_route_the_flow_stays(view: FakeView) -> None:
    decide(from_client(WANTS), view, NOW)
    decide(from_endpoint(CHECK, OTHER_ENDPOINT), view, NOW)
    view.unreachable = {OTHER_ENDPOINT[0]}
    assert reason_of(from_client(binding_response(CHECK_ID)), view) is Reason.SLOW_NO_ROUTE
    assert view.flows[OUR_KEY].endpoint == ENDPOINT


def test_the_latest_checks_are_kept() -> None:
    takeovers = Takeovers()
    takeovers.contend(OUR_KEY, Target(OTHER_ENDPOINT, 7, b"prefix.."), 0)
    ids = [bytes([number]) * 12 for number in range(CHECKS + 1)]
    for transaction in [*ids[:-1], ids[3], ids[-1]]:  # one is repeated
        takeovers.note(OUR_KEY, transaction)
    proven = [takeovers.proven(OUR_KEY, transaction, 1) is not None for transaction in ids]
    assert proven == [False] + [True] * CHECKS


def test_the_oldest_takeover_goes_when_there_are_too_many() -> None:
    takeovers = Takeovers()
    keys = [FlowKey(("198.51.100.7", port), 1) for port in range(CAPACITY + 2)]
    for key in [*keys[:-1], keys[1], keys[-1]]:  # one is renewed
        takeovers.contend(key, Target(OTHER_ENDPOINT, 7, b"prefix.."), 0)
    assert len(takeovers) == CAPACITY
    assert {keys[0], keys[2]}.isdisjoint(takeovers)
    assert {keys[1], keys[-1]} <= set(takeovers)


def test_takeovers_that_are_over_are_forgotten() -> None:
    takeovers = Takeovers()
    keys = [FlowKey(("198.51.100.7", port), 1) for port in range(4)]
    for now, key in enumerate(keys):
        takeovers.contend(key, Target(OTHER_ENDPOINT, 7, b"prefix.."), now)
    takeovers.purge(LIFE_NS + 1)
    assert list(takeovers) == keys[2:]
    takeovers.purge(LIFE_NS + 3)
    assert len(takeovers) == 0
