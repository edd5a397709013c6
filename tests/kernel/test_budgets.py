"""The doors to user space: what may pass in one unit of time, of one kind and of one share."""

import pytest

from relayctl.datapath.libbpf import XDP_DROP
from relayctl.reason import Reason
from tests.kernel.packets import DTLS, Address, frame, request, rtp, spp_header, stun
from tests.kernel.rig import (
    CLIENT,
    CLIENT_V6,
    ENDPOINT,
    ENDPOINT_V6,
    INNER,
    INNER_SIDE,
    INNER_V6,
    OUTER,
    SPORT,
    UNRESOLVED,
    VIP,
    VIP_V6,
    Rig,
    fresh_unit,
    now,
    token,
    token_slot,
)

OURS, OURS_V6 = (INNER, SPORT), (INNER_V6, SPORT)
REPLY, REPLY_V6 = spp_header(CLIENT, VIP) + DTLS, spp_header(CLIENT_V6, VIP_V6) + DTLS
UNRESOLVED_CLIENT = ("192.0.2.5", 5)
TOKEN_SHARE, FIRST = 16, 24_000
ORPHAN_SHARE, ORPHANS = 64, 2_000
RETURN_SHARE, RETURNS = 2_000, 10_000

EVERY_DOOR = [
    pytest.param(
        frame(CLIENT, VIP, request(token())),
        OUTER,
        TOKEN_SHARE,
        Reason.PUNT_FIRST,
        Reason.DROP_TOKEN_BUDGET,
        id="token",
    ),
    pytest.param(
        frame(CLIENT_V6, VIP_V6, request(token())),
        OUTER,
        TOKEN_SHARE,
        Reason.PUNT_FIRST,
        Reason.DROP_TOKEN_BUDGET,
        id="token_v6",
    ),
    pytest.param(
        frame(CLIENT, VIP, rtp(1)),
        OUTER,
        ORPHAN_SHARE,
        Reason.PUNT_ORPHAN,
        Reason.DROP_ORPHAN_CLIENT_BUDGET,
        id="orphan",
    ),
    pytest.param(
        frame(CLIENT_V6, VIP_V6, DTLS),
        OUTER,
        ORPHAN_SHARE,
        Reason.PUNT_ORPHAN,
        Reason.DROP_ORPHAN_CLIENT_BUDGET,
        id="orphan_v6",
    ),
    pytest.param(
        frame(ENDPOINT, OURS, REPLY),
        INNER_SIDE,
        RETURN_SHARE,
        Reason.PUNT_RETURN,
        Reason.DROP_RETURN_BUDGET,
        id="return",
    ),
    pytest.param(
        frame(ENDPOINT_V6, OURS_V6, REPLY_V6),
        INNER_SIDE,
        RETURN_SHARE,
        Reason.PUNT_RETURN,
        Reason.DROP_RETURN_BUDGET,
        id="return_v6",
    ),
    pytest.param(
        frame(CLIENT, VIP, stun(), ttl=1),
        OUTER,
        200,
        Reason.PUNT_ODD,
        Reason.DROP_ODD_BUDGET,
        id="odd",
    ),
    pytest.param(
        frame(UNRESOLVED_CLIENT, VIP, rtp(1)),
        OUTER,
        2_000,
        Reason.PUNT_NEXTHOP,
        Reason.DROP_NEXTHOP_BUDGET,
        id="nexthop",
    ),
]
every_door = pytest.mark.parametrize(
    ("sent", "interface", "limit", "punted", "refused"), EVERY_DOOR
)


@every_door
def test_door_closes_when_its_budget_is_spent(
    relay: Rig,
    one_cpu: None,
    sent: bytes,
    interface: str,
    limit: int,
    punted: Reason,
    refused: Reason,
) -> None:
    relay.install(UNRESOLVED_CLIENT, nexthop_in=UNRESOLVED)
    assert relay.repeat(sent, limit + 7, interface) == {punted: limit, refused: 7}
    last = relay.send(sent, interface)
    assert (last.reason, last.verdict) == (refused, XDP_DROP)
    fresh_unit(room=1.0)
    relay.datapath.beat(now())
    assert relay.send(sent, interface).reason is punted


@every_door
def test_without_a_daemon_every_door_is_shut(
    relay: Rig, sent: bytes, interface: str, limit: int, punted: Reason, refused: Reason
) -> None:
    relay.install(UNRESOLVED_CLIENT, nexthop_in=UNRESOLVED)
    relay.datapath.beat(now() - 3)
    outcome = relay.send(sent, interface)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_NO_DAEMON, XDP_DROP)


def test_without_a_daemon_nothing_is_spent(relay: Rig, one_cpu: None) -> None:
    sent = frame(CLIENT, VIP, request(token()))
    relay.datapath.beat(now() - 3)
    assert relay.repeat(sent, 50) == {Reason.DROP_NO_DAEMON: 50}
    relay.datapath.beat(now())
    assert relay.repeat(sent, TOKEN_SHARE) == {Reason.PUNT_FIRST: TOKEN_SHARE}


def test_one_spent_budget_leaves_the_other_doors_open(relay: Rig, one_cpu: None) -> None:
    sent = frame(CLIENT, VIP, request(token()))
    relay.repeat(sent, 20)
    assert relay.send(sent).reason is Reason.DROP_TOKEN_BUDGET
    assert relay.send(frame(CLIENT, VIP, rtp(1))).reason is Reason.PUNT_ORPHAN
    assert relay.send(frame(CLIENT, VIP, rtp(1), ttl=1)).reason is Reason.PUNT_ODD
    assert relay.send(frame(ENDPOINT, OURS, REPLY), INNER_SIDE).reason is Reason.PUNT_RETURN


def test_tokens_have_shares_of_their_own_from_wherever_they_come(relay: Rig, one_cpu: None) -> None:
    one, other = token(), token()
    sources = [(f"198.51.100.{n}", 1024 + n) for n in range(1, 33)]
    assert relay.run(frame(source, VIP, request(one)) for source in sources) == {
        Reason.PUNT_FIRST: TOKEN_SHARE,
        Reason.DROP_TOKEN_BUDGET: 32 - TOKEN_SHARE,
    }
    assert relay.repeat(frame(CLIENT, VIP, request(other)), 17) == {
        Reason.PUNT_FIRST: TOKEN_SHARE,
        Reason.DROP_TOKEN_BUDGET: 1,
    }


def test_forged_requests_spend_nothing(relay: Rig, one_cpu: None) -> None:
    one = token()
    forged = one[:4] + token()[4:]  # the same bucket
    assert token_slot(forged) == token_slot(one)
    assert relay.repeat(frame(CLIENT, VIP, request(forged)), 100) == {Reason.DROP_FORGED: 100}
    sent = frame(CLIENT, VIP, request(one))
    assert relay.repeat(sent, TOKEN_SHARE) == {Reason.PUNT_FIRST: TOKEN_SHARE}


def many_tokens(count: int) -> list[str]:
    """Tokens whose shares are in different slots."""
    by_slot: dict[int, str] = {}
    while len(by_slot) < count:
        made = token()
        by_slot[token_slot(made)] = made
    return list(by_slot.values())


def test_all_tokens_together_have_a_budget_of_the_cpu(relay: Rig, one_cpu: None) -> None:
    frames = [frame(CLIENT, VIP, request(each)) for each in many_tokens(FIRST // TOKEN_SHARE + 1)]
    fresh_unit(room=0.8)
    assert relay.run(frames, times=TOKEN_SHARE) == {
        Reason.PUNT_FIRST: FIRST,
        Reason.DROP_FIRST_BUDGET: TOKEN_SHARE,
    }


def many_clients(count: int) -> list[Address]:
    return [(f"198.18.{n // 256}.{n % 256}", 5000) for n in range(count)]


def test_a_client_address_has_one_share_for_all_its_ports(relay: Rig, one_cpu: None) -> None:
    ports = range(40000, 40000 + ORPHAN_SHARE + 2)
    assert relay.run(frame((CLIENT[0], port), VIP, rtp(1)) for port in ports) == {
        Reason.PUNT_ORPHAN: ORPHAN_SHARE,
        Reason.DROP_ORPHAN_CLIENT_BUDGET: 2,
    }
    neighbour = frame(("192.0.2.78", 40000), VIP, rtp(1))
    assert relay.repeat(neighbour, ORPHAN_SHARE) == {Reason.PUNT_ORPHAN: ORPHAN_SHARE}


def test_all_orphans_together_have_a_budget_of_the_cpu(relay: Rig, one_cpu: None) -> None:
    clients = ORPHANS // ORPHAN_SHARE + 1
    frames = [frame(each, VIP, DTLS) for each in many_clients(clients)]
    fresh_unit(room=0.8)
    assert relay.run(frames, times=ORPHAN_SHARE) == {
        Reason.PUNT_ORPHAN: ORPHANS,
        Reason.DROP_ORPHAN_BUDGET: clients * ORPHAN_SHARE - ORPHANS,
    }


def test_all_endpoints_together_have_a_budget_of_the_cpu(relay: Rig, one_cpu: None) -> None:
    endpoints = [("10.77.0.1", 6000 + n) for n in range(RETURNS // RETURN_SHARE + 1)]
    frames = [frame(each, OURS, REPLY) for each in endpoints]
    fresh_unit(room=0.8)
    assert relay.run(frames, INNER_SIDE, times=RETURN_SHARE) == {
        Reason.PUNT_RETURN: RETURNS,
        Reason.DROP_RETURN_BUDGET: RETURN_SHARE,
    }


def test_known_flows_need_no_budget(relay: Rig, one_cpu: None) -> None:
    relay.repeat(frame(CLIENT, VIP, rtp(1)), 3_000)
    relay.install()
    assert relay.send(frame(CLIENT, VIP, rtp(1))).reason is Reason.FORWARD


@pytest.mark.parametrize(
    ("beat", "reason"),
    [
        pytest.param(2, Reason.PUNT_FIRST, id="two_units_old"),
        pytest.param(3, Reason.DROP_NO_DAEMON, id="three_units_old"),
        pytest.param(-1, Reason.PUNT_FIRST, id="ahead"),
    ],
)
def test_heartbeat_lives_two_units(relay: Rig, beat: int, reason: Reason) -> None:
    fresh_unit()
    relay.datapath.beat(now() - beat)
    assert relay.send(frame(CLIENT, VIP, request(token()))).reason is reason


def test_known_flows_need_no_daemon(relay: Rig) -> None:
    key = relay.install()
    relay.datapath.beat(0)
    assert relay.send(frame(CLIENT, VIP, DTLS)).reason is Reason.FORWARD
    assert relay.send(frame(ENDPOINT, OURS, REPLY), INNER_SIDE).reason is Reason.RETURN
    assert relay.flow(key).packets_down == 1
