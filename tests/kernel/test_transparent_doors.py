"""Transparent mode: what is a reply, what a client's packet, and what is left to the kernel."""

import pytest

from relayctl.datapath.libbpf import XDP_DROP, XDP_PASS
from relayctl.flow import CONFIRMED
from relayctl.reason import Reason
from tests.kernel.packets import (
    DTLS,
    EXTENSIONS,
    Address,
    frame,
    request,
    stun,
)
from tests.kernel.rig import (
    CLIENT,
    CLIENT_V6,
    ENDPOINT,
    ENDPOINT_V6,
    NATTED_LOCAL,
    NATTED_LOCAL_V6,
    NATTED_PUBLIC,
    NATTED_PUBLIC_V6,
    SMALL,
    UNRESOLVED,
    VIP_V6,
    Rig,
    token,
)
from tests.kernel.transparent import BOTH, INNER_SIDE, OUTER, families, install


@families
@pytest.mark.parametrize("change", ["none", "other_host", "other_port", "other_client"])
def test_reply_without_its_flow_is_dropped(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address, change: str
) -> None:
    (host, port), key = endpoint, None
    if change != "none":
        key = install(plain, client, vip, endpoint)
    before = key and plain.flow(key)
    other = "10.2.0.3" if vip == 2 else "fd00:2::3"
    sender = {"other_host": (other, port), "other_port": (host, port + 1)}.get(change, endpoint)
    to = (client[0], client[1] + 1) if change == "other_client" else client
    sent = frame(sender, to, DTLS)
    plain.datapath.beat(0)
    outcome = plain.send(sent, INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_REPLY_WITHOUT_FLOW, XDP_DROP)
    assert outcome.data == sent
    assert (key and plain.flow(key)) == before


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame((ENDPOINT[0], 1023), CLIENT, DTLS), id="port_below_the_range"),
        pytest.param(frame((ENDPOINT[0], 53), CLIENT, DTLS), id="dns"),
        pytest.param(frame((ENDPOINT_V6[0], 1023), CLIENT_V6, DTLS), id="v6_port_below_the_range"),
        pytest.param(frame((ENDPOINT[0], 0), CLIENT, DTLS), id="port_0"),
        pytest.param(frame(("10.2.1.2", 5000), CLIENT, DTLS), id="outside_the_network"),
        pytest.param(frame(("fd00:2::1:2", 5000), CLIENT_V6, DTLS), id="v6_outside_the_network"),
        pytest.param(frame(ENDPOINT, ("10.3.0.2", 40000), DTLS), id="our_own_address"),
        pytest.param(frame(ENDPOINT_V6, ("fd00:3::2", 40000), DTLS), id="our_own_v6_address"),
        pytest.param(frame(ENDPOINT, (NATTED_LOCAL[0], 443), DTLS), id="other_port_of_our_vip"),
        pytest.param(frame(ENDPOINT, NATTED_PUBLIC, DTLS), id="our_public_vip"),
        pytest.param(frame(ENDPOINT_V6, (NATTED_LOCAL_V6[0], 443), DTLS), id="our_v6_vip"),
        pytest.param(frame(ENDPOINT_V6, NATTED_PUBLIC_V6, DTLS), id="our_public_v6_vip"),
        pytest.param(frame(ENDPOINT, CLIENT, DTLS, protocol=6), id="tcp"),
        pytest.param(frame(ENDPOINT, CLIENT, DTLS, fragment=5), id="later_fragment"),
        pytest.param(
            frame(ENDPOINT_V6, CLIENT_V6, DTLS, extensions=(EXTENSIONS["hop_by_hop"],)),
            id="extension_header",
        ),
        pytest.param(frame(ENDPOINT, CLIENT, DTLS)[:40], id="cut_in_the_udp_header"),
        pytest.param(frame(CLIENT, ("203.0.113.10", 3478), DTLS), id="vip_of_another"),
    ],
)
@pytest.mark.parametrize("interface", [OUTER, INNER_SIDE, BOTH])
def test_what_is_not_ours_passes_untouched(plain: Rig, sent: bytes, interface: str) -> None:
    install(plain, CLIENT, 2, ENDPOINT)
    install(plain, CLIENT_V6, 4, ENDPOINT_V6)
    outcome = plain.send(sent, interface)
    assert (outcome.reason, outcome.verdict) == (Reason.PASS_NOT_OURS, XDP_PASS)
    assert outcome.data == sent


@pytest.mark.parametrize("port", [1024, 65535])
def test_the_port_range_is_ours_to_its_ends(plain: Rig, port: int) -> None:
    for client, vip, (host, _) in ((CLIENT, 2, ENDPOINT), (CLIENT_V6, 4, ENDPOINT_V6)):
        install(plain, client, vip, (host, port))
        assert plain.send(frame((host, port), client, DTLS), INNER_SIDE).reason is Reason.RETURN


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(ENDPOINT, CLIENT, DTLS, ttl=1), id="ttl_1"),
        pytest.param(frame(ENDPOINT, CLIENT, DTLS, options=b"\1\1\1\1"), id="options"),
        pytest.param(frame(ENDPOINT, CLIENT, DTLS, fragment=0x2000), id="first_fragment"),
        pytest.param(frame(ENDPOINT, CLIENT, DTLS, udp_length=9), id="bytes_behind_udp"),
        pytest.param(frame(ENDPOINT_V6, CLIENT_V6, DTLS, ttl=1), id="v6_hop_limit_1"),
        pytest.param(frame(ENDPOINT_V6, CLIENT_V6, DTLS, sum=0), id="v6_no_checksum"),
        pytest.param(frame(ENDPOINT_V6, CLIENT_V6, DTLS, udp_length=9), id="v6_bytes_behind_udp"),
    ],
)
def test_odd_reply_is_dropped(plain: Rig, sent: bytes) -> None:
    keys = install(plain, CLIENT, 2, ENDPOINT), install(plain, CLIENT_V6, 4, ENDPOINT_V6)
    outcome = plain.send(sent, INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_REPLY_NOT_CARRIED, XDP_DROP)
    assert all(plain.flow(key).packets_down == 0 for key in keys)


@families
@pytest.mark.parametrize("index", [UNRESOLVED, 0, 4095, SMALL])
def test_reply_whose_nexthop_is_of_no_use_is_dropped_and_still_confirms(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address, index: int
) -> None:
    key = install(plain, client, vip, endpoint, nexthop_out=index)
    sent = frame(endpoint, client, b"\x80" * 600)
    outcome = plain.send(sent, INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_REPLY_NOT_CARRIED, XDP_DROP)
    assert outcome.data == sent
    assert (plain.flow(key).packets_down, plain.flow(key).flags) == (1, CONFIRMED)


@families
def test_sides(plain: Rig, client: Address, vip: int, local: Address, endpoint: Address) -> None:
    install(plain, client, vip, endpoint)
    up, down = frame(client, local, DTLS), frame(endpoint, client, DTLS)
    assert plain.send(up, INNER_SIDE).reason is Reason.DROP_WRONG_SIDE
    assert plain.send(down, OUTER).reason is Reason.DROP_WRONG_SIDE
    assert plain.send(up, BOTH).reason is Reason.FORWARD
    assert plain.send(down, BOTH).reason is Reason.RETURN


@families
def test_unreadable_packets_are_dropped(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address
) -> None:
    install(plain, client, vip, endpoint)
    for sent, interface in (
        (frame(client, local, DTLS), OUTER),
        (frame(endpoint, client, DTLS), INNER_SIDE),
    ):
        assert plain.send(sent[:-1], interface).reason is Reason.DROP_BAD_LENGTH


@families
def test_first_requests_and_orphans_are_handed_up(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address
) -> None:
    for payload, reason in (
        (request(token()), Reason.PUNT_FIRST),
        (DTLS, Reason.PUNT_ORPHAN),
        (stun(), Reason.DROP_STUN_SHAPE),
        (b"\xff", Reason.DROP_NO_FLOW),
    ):
        sent = frame(client, local, payload)
        outcome = plain.send(sent, OUTER)
        assert (outcome.reason, outcome.data) == (reason, sent)


def test_endpoint_is_no_client(plain: Rig) -> None:
    for host, local in (("10.2.0.9", NATTED_LOCAL), ("fd00:2::9", NATTED_LOCAL_V6)):
        sent = frame((host, 40000), local, request(token()))
        assert plain.send(sent, OUTER).reason is Reason.DROP_BAD_SOURCE


def test_odd_client_packet_goes_to_the_kernel(plain: Rig) -> None:
    sent = frame(CLIENT, NATTED_LOCAL, DTLS, ttl=1)
    assert plain.send(sent, OUTER).reason is Reason.PUNT_ODD


@pytest.mark.parametrize(
    ("client", "vip", "local", "endpoint"),
    [(CLIENT, 2, NATTED_LOCAL, ENDPOINT_V6), (CLIENT_V6, 4, NATTED_LOCAL_V6, ENDPOINT)],
)
def test_endpoint_of_the_other_family_cannot_be_reached(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address
) -> None:
    install(plain, client, vip, endpoint)
    sent = frame(client, local, DTLS)
    outcome = plain.send(sent, OUTER)
    assert (outcome.reason, outcome.data) == (Reason.PUNT_NEXTHOP, sent)


def test_vip_of_the_other_instance_is_not_ours(plain: Rig) -> None:
    assert plain.send(frame(CLIENT_V6, VIP_V6, DTLS), OUTER).reason is Reason.PASS_NOT_OURS


def test_takeover_is_the_same(plain: Rig) -> None:
    own = token()
    key = install(plain, CLIENT, 2, ENDPOINT, token=own[:8].encode())
    contender = frame(CLIENT, NATTED_LOCAL, request(token(("10.2.0.3", 5000))))
    assert plain.send(contender, OUTER).reason is Reason.PUNT_CONTENDED
    answer = frame(CLIENT, NATTED_LOCAL, stun(0x0101))
    assert plain.send(answer, OUTER).reason is Reason.PUNT_ANSWER
    assert plain.flow(key).token == own[:8].encode()
