"""A flow meets a token that is not its own: forged, of the same endpoint, of another one; and the
answers that may prove a takeover."""

from typing import Any

import pytest

from relayctl.datapath.libbpf import XDP_DROP, XDP_PASS, XDP_REDIRECT
from relayctl.flow import CONFIRMED, FlowKey
from relayctl.reason import Reason
from relayctl.wire.route_token import Key
from tests.kernel.packets import (
    DTLS,
    USERNAME,
    Address,
    attribute,
    frame,
    request,
    rtp,
    spp_header,
    stun,
    take_apart,
)
from tests.kernel.rig import (
    CLIENT,
    CLIENT_V6,
    ENDPOINT,
    ENDPOINT_V6,
    INNER,
    INNER_SIDE,
    SPORT,
    UNRESOLVED,
    VIP,
    VIP_V6,
    Outcome,
    Rig,
    fresh_unit,
    now,
    token,
)

OTHER = ("10.2.0.3", 5000)
SUCCESS, ERROR = 0x0101, 0x0111
FULL: dict[str, Any] = {  # a flow in the middle of its life
    "back": 3,
    "flags": CONFIRMED,
    "seen_up": 10,
    "seen_down": 11,
    "ssrc": 12,
    "packets_up": 13,
    "packets_down": 14,
    "born": 15,
    "bytes_up": 16,
    "bytes_down": 17,
}


def prefix(token: str) -> bytes:
    return token[:8].encode()


def changed(relay: Rig, key: FlowKey, payload: bytes) -> tuple[Outcome, dict[str, Any]]:
    """What becomes of a client's payload, and the flow's fields that it changed."""
    before = relay.flow(key)._asdict()
    vip = VIP_V6 if key.vip == 3 else VIP
    outcome = relay.send(frame(key.client, vip, payload))
    after = relay.flow(key)._asdict()
    return outcome, {name: after[name] for name in after if after[name] != before[name]}


def forwarded(payload: bytes, stamp: int) -> dict[str, Any]:
    """Fields of `FULL` that a forwarded payload changes."""
    return {"seen_up": stamp, "packets_up": 14, "bytes_up": 16 + len(payload)}


def test_own_token_goes_on(relay: Rig) -> None:
    own = token()
    key = relay.install(token=prefix(own), **FULL)
    fresh_unit()
    outcome, change = changed(relay, key, request(own))
    assert outcome.reason is Reason.FORWARD
    assert change == forwarded(request(own), now())


def test_own_prefix_is_not_verified_again(relay: Rig) -> None:
    """Its endpoint does that: the flow, not the packet, says where it goes."""
    own = token()
    relay.install(token=prefix(own))
    sent = request(own[:8] + "A" * 16)
    relay.datapath.write_keys({})
    outcome = relay.send(frame(CLIENT, VIP, sent))
    assert outcome.reason is Reason.FORWARD
    assert take_apart(outcome.data).destination == ENDPOINT


def test_own_prefix_needs_the_shape(relay: Rig) -> None:
    own = token()
    relay.install(token=prefix(own))
    sent = stun(attributes=attribute(USERNAME, own[:23].encode() + b":x"))
    assert relay.send(frame(CLIENT, VIP, sent)).reason is Reason.DROP_STUN_SHAPE


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        pytest.param(
            lambda: request(token(key=Key(1, bytes(32)))), Reason.DROP_FORGED, id="forged"
        ),
        pytest.param(
            lambda: request(token(key=Key(9, bytes(32)))), Reason.DROP_UNKNOWN_KEY, id="unknown_key"
        ),
        pytest.param(lambda: request("A" * 24), Reason.DROP_STUN_SHAPE, id="version_0"),
        pytest.param(lambda: request("ufrag"), Reason.DROP_STUN_SHAPE, id="foreign_ufrag"),
        pytest.param(lambda: stun(), Reason.DROP_STUN_SHAPE, id="no_username"),
        pytest.param(
            lambda: request(token(), before=attribute(0x0008, bytes(20))),
            Reason.DROP_STUN_SHAPE,
            id="unsigned_username",
        ),
    ],
)
def test_what_is_not_authentic_is_dropped_and_changes_nothing(
    relay: Rig, made: Any, reason: Reason
) -> None:
    key = relay.install(token=prefix(token()), **FULL)
    outcome, change = changed(relay, key, made())
    assert (outcome.reason, outcome.verdict) == (reason, XDP_DROP)
    assert change == {}


@pytest.mark.parametrize(
    ("client", "vip", "endpoint"),
    [(CLIENT, 1, ENDPOINT), (CLIENT_V6, 3, ENDPOINT_V6), (CLIENT, 1, ENDPOINT_V6)],
)
def test_token_of_the_same_endpoint_replaces_that_of_the_flow(
    relay: Rig, client: Address, vip: int, endpoint: Address
) -> None:
    """Another call, or an ICE restart."""
    old, new = token(endpoint), token(endpoint)
    key = relay.install(client, vip, endpoint=endpoint, token=prefix(old), **FULL)
    fresh_unit()
    outcome, change = changed(relay, key, request(new))
    assert (outcome.reason, outcome.verdict) == (Reason.FORWARD, XDP_REDIRECT)
    assert change == forwarded(request(new), now()) | {"token": prefix(new)}
    assert take_apart(outcome.data).destination == endpoint


def test_flow_without_a_token_learns_it(relay: Rig) -> None:
    own = token()
    key = relay.install(**FULL)
    relay.datapath.beat(0)  # needs nobody
    outcome, change = changed(relay, key, request(own))
    assert outcome.reason is Reason.FORWARD
    assert change["token"] == prefix(own)


def test_flow_without_a_token_believes_no_forged_one(relay: Rig) -> None:
    key = relay.install(**FULL)
    outcome, change = changed(relay, key, request(token(key=Key(1, bytes(32)))))
    assert (outcome.reason, change) == (Reason.DROP_FORGED, {})


def test_no_token_is_nobodys_prefix(relay: Rig) -> None:
    key = relay.install(**FULL)
    outcome, change = changed(relay, key, request("\0" * 8 + token()[8:]))
    assert (outcome.reason, change) == (Reason.DROP_STUN_SHAPE, {})


def test_only_requests_replace_a_token(relay: Rig) -> None:
    key = relay.install(token=prefix(token()), **FULL)
    for kind in (SUCCESS, ERROR, 0x0011):
        sent = bytearray(request(token()))
        sent[:2] = kind.to_bytes(2, "big")
        outcome, change = changed(relay, key, bytes(sent))
        assert outcome.reason is Reason.FORWARD
        assert "token" not in change


@pytest.mark.parametrize(
    "contender",
    [
        pytest.param(lambda: token(OTHER), id="other_host"),
        pytest.param(lambda: token((ENDPOINT[0], 5001)), id="other_port"),
        pytest.param(lambda: token(cluster=9), id="other_cluster"),
        pytest.param(lambda: token(ENDPOINT_V6), id="other_family"),
    ],
)
@pytest.mark.parametrize(("client", "vip"), [(CLIENT, 1), (CLIENT_V6, 3)])
def test_token_of_another_endpoint_contends(
    relay: Rig, client: Address, vip: int, contender: Any
) -> None:
    key = relay.install(client, vip, token=prefix(token()), contended=5, **FULL)
    sent = request(contender())
    fresh_unit()
    outcome, change = changed(relay, key, sent)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_CONTENDED, XDP_PASS)
    assert take_apart(outcome.data).payload == sent
    assert change == {"contended": now()}


def test_contention_needs_a_daemon(relay: Rig) -> None:
    key = relay.install(token=prefix(token()), **FULL)
    relay.datapath.beat(now() - 3)
    outcome, change = changed(relay, key, request(token(OTHER)))
    assert (outcome.reason, change) == (Reason.DROP_NO_DAEMON, {})


def test_contention_spends_the_share_of_its_token(relay: Rig, one_cpu: None) -> None:
    relay.install(token=prefix(token()))
    made = token(OTHER)
    assert relay.repeat(frame(CLIENT, VIP, request(made)), 18) == {
        Reason.PUNT_CONTENDED: 16,
        Reason.DROP_TOKEN_BUDGET: 2,
    }
    first = frame(("192.0.2.9", 9), VIP, request(made))
    assert relay.send(first).reason is Reason.DROP_TOKEN_BUDGET


def test_refused_contention_leaves_no_stamp(relay: Rig, one_cpu: None) -> None:
    made = token(OTHER)
    relay.repeat(frame(("192.0.2.9", 9), VIP, request(made)), 16)
    key = relay.install(token=prefix(token()), **FULL)
    outcome, change = changed(relay, key, request(made))
    assert (outcome.reason, change) == (Reason.DROP_TOKEN_BUDGET, {})


def test_media_of_a_contended_flow_goes_on(relay: Rig) -> None:
    key = relay.install(token=prefix(token()), contended=now())
    for payload in (DTLS, rtp(1), request(token(ENDPOINT)), stun(ERROR), stun(0x0011)):
        outcome = relay.send(frame(CLIENT, VIP, payload))
        assert outcome.reason is Reason.FORWARD
        assert take_apart(outcome.data).destination == ENDPOINT
    reply = frame(ENDPOINT, (INNER, SPORT), spp_header(CLIENT, VIP) + stun(SUCCESS))
    assert relay.send(reply, INNER_SIDE).reason is Reason.RETURN
    assert relay.flow(key).answers == 0


@pytest.mark.parametrize(("client", "vip"), [(CLIENT, 1), (CLIENT_V6, 3)])
def test_answer_of_a_contended_flow_is_handed_up_and_counted(
    relay: Rig, client: Address, vip: int
) -> None:
    fresh_unit()
    stamp = now()
    key = relay.install(client, vip, contended=stamp, **FULL)
    sent = stun(SUCCESS)
    outcome, change = changed(relay, key, sent)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_ANSWER, XDP_PASS)
    assert take_apart(outcome.data).payload == sent
    assert change == forwarded(sent, stamp) | {"answers": (stamp << 8 | 1) & 0xFFFFFFFF}


def test_eight_answers_in_a_unit_are_handed_up_and_further_ones_forwarded(
    relay: Rig, one_cpu: None
) -> None:
    stamp = now()
    key = relay.install(contended=stamp)
    sent = frame(CLIENT, VIP, stun(SUCCESS))
    assert relay.repeat(sent, 8) == {Reason.PUNT_ANSWER: 8}
    assert [relay.send(sent).reason for _ in range(3)] == [Reason.FORWARD] * 3
    assert relay.flow(key).answers == (stamp << 8 | 8) & 0xFFFFFFFF
    assert relay.flow(key).packets_up == 11


def test_flows_have_answers_of_their_own(relay: Rig, one_cpu: None) -> None:
    other = ("192.0.2.78", 40000)
    for client in (CLIENT, other):
        relay.install(client, contended=now())
        assert relay.repeat(frame(client, VIP, stun(SUCCESS)), 8) == {Reason.PUNT_ANSWER: 8}


@pytest.mark.parametrize("ago", [1, 2, 255, 256, 65536])
def test_answers_of_another_unit_are_forgotten(relay: Rig, ago: int) -> None:
    fresh_unit()
    stamp = now()
    before = ((stamp - ago) & 0xFFFFFF) << 8 | 8
    key = relay.install(contended=stamp, answers=before)
    assert relay.send(frame(CLIENT, VIP, stun(SUCCESS))).reason is Reason.PUNT_ANSWER
    assert relay.flow(key).answers == (stamp << 8 | 1) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("ago", "reason"),
    [
        pytest.param(0, Reason.PUNT_ANSWER, id="now"),
        pytest.param(-1, Reason.PUNT_ANSWER, id="ahead"),
        pytest.param(5, Reason.PUNT_ANSWER, id="5_units"),
        pytest.param(6, Reason.FORWARD, id="6_units"),
        pytest.param(1000, Reason.FORWARD, id="long_ago"),
    ],
)
def test_contention_lasts_five_units(relay: Rig, ago: int, reason: Reason) -> None:
    fresh_unit()
    relay.install(contended=(now() - ago) % 2**32)  # a machine may be up for less than that
    assert relay.send(frame(CLIENT, VIP, stun(SUCCESS))).reason is reason


def test_answer_without_contention_is_forwarded(relay: Rig) -> None:
    key = relay.install()
    assert relay.send(frame(CLIENT, VIP, stun(SUCCESS))).reason is Reason.FORWARD
    assert relay.flow(key).answers == 0


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(stun(ERROR), id="error_response"),
        pytest.param(stun(0x0011), id="indication"),
        pytest.param(stun(SUCCESS, cookie=1), id="wrong_cookie"),
        pytest.param(stun(SUCCESS, length=4), id="wrong_length"),
        pytest.param(stun(0x0103), id="allocate_response"),
        pytest.param(stun(SUCCESS)[:19], id="cut"),
        pytest.param(DTLS, id="dtls"),
    ],
)
def test_only_success_responses_prove_something(relay: Rig, payload: bytes) -> None:
    relay.install(contended=now())
    assert relay.send(frame(CLIENT, VIP, payload)).reason is Reason.FORWARD


def test_without_a_daemon_answers_are_forwarded(relay: Rig) -> None:
    key = relay.install(contended=now())
    relay.datapath.beat(now() - 3)
    assert relay.send(frame(CLIENT, VIP, stun(SUCCESS))).reason is Reason.FORWARD
    assert relay.flow(key).answers == 0


def test_answer_is_handed_up_before_the_nexthop_is_looked_at(relay: Rig) -> None:
    relay.install(contended=now(), nexthop_in=UNRESOLVED)
    assert relay.send(frame(CLIENT, VIP, stun(SUCCESS))).reason is Reason.PUNT_ANSWER


def test_contention_and_answer_in_a_row(relay: Rig) -> None:
    """As the program itself stamps it."""
    key = relay.install(token=prefix(token()), endpoint=ENDPOINT)
    assert relay.send(frame(CLIENT, VIP, request(token(OTHER)))).reason is Reason.PUNT_CONTENDED
    assert relay.send(frame(CLIENT, VIP, stun(SUCCESS))).reason is Reason.PUNT_ANSWER
    assert relay.flow(key).endpoint == ENDPOINT
