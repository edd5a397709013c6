"""IPv6 on either leg, with endpoints and clients of either family.

Whole rewritten frames of every mix of families are compared in test_checksums.py."""

from ipaddress import IPv6Address
from typing import Any

import pytest

from relayctl.datapath.libbpf import XDP_DROP, XDP_REDIRECT
from relayctl.flow import CONFIRMED
from relayctl.reason import Reason
from tests.kernel.packets import (
    DTLS,
    Address,
    frame,
    request,
    rtp,
    spp_header,
    stun,
    take_apart,
)
from tests.kernel.rig import (
    CLIENT,
    CLIENT_MACS,
    CLIENT_V6,
    ENDPOINT,
    ENDPOINT_MACS,
    ENDPOINT_V6,
    INNER,
    INNER_SIDE,
    INNER_V6,
    NATTED_LOCAL,
    NATTED_LOCAL_V6,
    NATTED_PUBLIC_V6,
    OUTER,
    SMALL,
    SPORT,
    UNRESOLVED,
    VIP,
    VIP_V6,
    Rig,
    now,
    token,
)

OURS, OURS_V6 = (INNER, SPORT), (INNER_V6, SPORT)
REPLY = spp_header(CLIENT_V6, VIP_V6) + DTLS


def flow_v6(relay: Rig, **changes: Any) -> Any:
    return relay.install(CLIENT_V6, 3, **{"endpoint": ENDPOINT_V6} | changes)


def test_client_packet_goes_to_its_endpoint(relay: Rig) -> None:
    flow_v6(relay)
    sent = frame(CLIENT_V6, VIP_V6, rtp(1), ttl=57, tos=0xB9, label=0xABCDE)
    outcome = relay.send(sent)
    assert (outcome.reason, outcome.verdict) == (Reason.FORWARD, XDP_REDIRECT)
    macs = ENDPOINT_MACS[1], ENDPOINT_MACS[0]
    inner = spp_header(CLIENT_V6, VIP_V6) + rtp(1)
    assert outcome.data == frame(OURS_V6, ENDPOINT_V6, inner, macs=macs, ttl=56, tos=0xB9)


def test_endpoint_packet_goes_to_its_client(relay: Rig) -> None:
    flow_v6(relay)
    sent = frame(ENDPOINT_V6, OURS_V6, REPLY, ttl=33, tos=0x2E, label=0x12345)
    outcome = relay.send(sent, INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.RETURN, XDP_REDIRECT)
    macs = CLIENT_MACS[1], CLIENT_MACS[0]
    assert outcome.data == frame(VIP_V6, CLIENT_V6, DTLS, macs=macs, ttl=32, tos=0x2E)


def test_nat_shows_the_public_vip_inside_and_the_local_one_outside(relay: Rig) -> None:
    relay.install(CLIENT_V6, 4, endpoint=ENDPOINT_V6)
    up = take_apart(relay.send(frame(CLIENT_V6, NATTED_LOCAL_V6, DTLS)).data)
    assert up.payload == spp_header(CLIENT_V6, NATTED_PUBLIC_V6) + DTLS
    sent = frame(ENDPOINT_V6, OURS_V6, up.payload)
    assert take_apart(relay.send(sent, INNER_SIDE).data).source == NATTED_LOCAL_V6
    foreign = frame(ENDPOINT_V6, OURS_V6, spp_header(CLIENT_V6, NATTED_LOCAL_V6) + DTLS)
    assert relay.send(foreign, INNER_SIDE).reason is Reason.DROP_FOREIGN_VIP


def test_both_directions_are_counted_and_stamped(relay: Rig) -> None:
    key = flow_v6(relay)
    before = now()
    relay.send(frame(CLIENT_V6, VIP_V6, rtp(0x11223344)))
    relay.send(frame(ENDPOINT_V6, OURS_V6, REPLY), INNER_SIDE)
    flow = relay.flow(key)
    assert (flow.packets_up, flow.bytes_up, flow.ssrc) == (1, len(rtp(0)), 0x11223344)
    assert (flow.packets_down, flow.bytes_down, flow.flags) == (1, len(DTLS), CONFIRMED)
    assert before <= flow.seen_up <= flow.seen_down <= now()


@pytest.mark.parametrize("ttl", [2, 255])
def test_hop_limit_is_one_less(relay: Rig, ttl: int) -> None:
    flow_v6(relay)
    up = relay.send(frame(CLIENT_V6, VIP_V6, DTLS, ttl=ttl))
    down = relay.send(frame(ENDPOINT_V6, OURS_V6, REPLY, ttl=ttl), INNER_SIDE)
    assert take_apart(up.data).ttl == take_apart(down.data).ttl == ttl - 1


@pytest.mark.parametrize("tos", [0x01, 0x0F, 0x10, 0xF0, 0xFF])
@pytest.mark.parametrize("endpoint", [ENDPOINT, ENDPOINT_V6], ids=["to_v4", "to_v6"])
def test_traffic_class_is_copied_without_the_flow_label(
    relay: Rig, tos: int, endpoint: Address
) -> None:
    flow_v6(relay, endpoint=endpoint)
    up = relay.send(frame(CLIENT_V6, VIP_V6, DTLS, tos=tos, label=0xFFFFF))
    assert take_apart(up.data).tos == tos
    if endpoint == ENDPOINT_V6:
        assert up.data[15:18] == bytes([tos << 4 & 0xFF, 0, 0])


MAPPED_CLIENT = ("::ffff:192.0.2.77", 40000)


def test_mapped_source_is_not_the_ipv4_client(relay: Rig) -> None:
    relay.install(CLIENT, 3)  # in the map of IPv4 clients
    sent = frame(MAPPED_CLIENT, VIP_V6, request(token()))
    assert relay.send(sent).reason is Reason.DROP_BAD_SOURCE


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        pytest.param((CLIENT_V6, VIP), Reason.DROP_NOT_SPP, id="v6_client_v4_proxy"),
        pytest.param((CLIENT, VIP_V6), Reason.DROP_NOT_SPP, id="v4_client_v6_proxy"),
        pytest.param((CLIENT, VIP), Reason.RETURN, id="v4_client_v4_proxy"),
        pytest.param((CLIENT_V6, VIP_V6), Reason.RETURN, id="v6_client_v6_proxy"),
        pytest.param(
            (CLIENT_V6, (VIP_V6[0], 3479)), Reason.DROP_FOREIGN_VIP, id="other_port_of_the_proxy"
        ),
        pytest.param(
            (CLIENT_V6, ("2001:db8:113::11", 3478)), Reason.DROP_FOREIGN_VIP, id="other_proxy"
        ),
        pytest.param(
            (CLIENT_V6, ("2001:db8:114::10", 3478)), Reason.DROP_FOREIGN_VIP, id="other_prefix"
        ),
        pytest.param(
            (("2001:db8:78::77", 40000), VIP_V6), Reason.PUNT_RETURN, id="other_client_prefix"
        ),
    ],
)
@pytest.mark.parametrize("endpoint", [ENDPOINT, ENDPOINT_V6], ids=["from_v4", "from_v6"])
def test_families_and_addresses_in_the_spp_header(
    relay: Rig, header: tuple[Address, Address], reason: Reason, endpoint: Address
) -> None:
    relay.install(CLIENT, 1, endpoint=endpoint)
    flow_v6(relay, endpoint=endpoint)
    ours = OURS_V6 if endpoint == ENDPOINT_V6 else OURS
    sent = frame(endpoint, ours, spp_header(*header) + DTLS)
    assert relay.send(sent, INNER_SIDE).reason is reason


@pytest.mark.parametrize(
    ("sender", "reason"),
    [
        pytest.param(("fd00:2::3", 5000), Reason.PUNT_RETURN, id="other_host"),
        pytest.param(("fd00:2::2", 5001), Reason.PUNT_RETURN, id="other_port"),
        pytest.param(("fd00:2::1:2", 5000), Reason.DROP_NOT_AN_ENDPOINT, id="outside"),
        pytest.param(("fd00:3::2", 5000), Reason.DROP_NOT_AN_ENDPOINT, id="other_prefix"),
        pytest.param(("2001:db8::2", 5000), Reason.DROP_NOT_AN_ENDPOINT, id="internet"),
    ],
)
def test_other_senders_do_not_reach_the_client(relay: Rig, sender: Address, reason: Reason) -> None:
    key = flow_v6(relay)
    before = relay.flow(key)
    sent = frame(sender, OURS_V6, REPLY)
    outcome = relay.send(sent, INNER_SIDE)
    assert (outcome.reason, outcome.data) == (reason, sent)
    assert relay.flow(key) == before


def test_endpoint_of_the_other_family_with_the_same_last_word_is_another(relay: Rig) -> None:
    """10.2.0.2 is inside a network, and so is the IPv6 address that ends like it."""
    flow_v6(relay, endpoint=("fd00:2::a02:2", 5000))
    sent = frame(("10.2.0.2", 5000), OURS, REPLY)
    assert relay.send(sent, INNER_SIDE).reason is Reason.PUNT_RETURN


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("::", id="unspecified"),
        pytest.param("::1", id="loopback"),
        pytest.param("::ffff:198.51.100.7", id="mapped"),
        pytest.param("::ffff:0.0.0.0", id="mapped_0"),
        pytest.param("fe80::1", id="link_local"),
        pytest.param("febf:ffff::1", id="last_link_local"),
        pytest.param("ff00::", id="multicast"),
        pytest.param("ff02::1", id="all_nodes"),
        pytest.param("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", id="all_ones"),
        pytest.param("fd00:2::9", id="allowed_network"),
        pytest.param("fd00:2::ffff", id="end_of_the_allowed_network"),
        pytest.param(INNER_V6, id="inner_address"),
        pytest.param("fd00:3::2", id="own"),
        pytest.param(VIP_V6[0], id="vip"),
        pytest.param(NATTED_PUBLIC_V6[0], id="public_vip"),
        pytest.param(NATTED_LOCAL_V6[0], id="local_vip"),
    ],
)
def test_address_that_no_client_has_is_dropped(relay: Rig, host: str) -> None:
    for payload in (request(token()), DTLS, b""):
        outcome = relay.send(frame((host, 40000), VIP_V6, payload))
        assert (outcome.reason, outcome.verdict) == (Reason.DROP_BAD_SOURCE, XDP_DROP)


def test_port_0_is_no_source(relay: Rig) -> None:
    sent = frame((CLIENT_V6[0], 0), VIP_V6, request(token()))
    assert relay.send(sent).reason is Reason.DROP_BAD_SOURCE


@pytest.mark.parametrize(
    "host",
    [
        "::2",
        "::1:0:1",
        "1::",
        "1::1",
        "::fffe:198.51.100.7",
        "::1:ffff:198.51.100.7",
        "fe7f:ffff::1",
        "fec0::1",
        "feff::1",
        "fd00:2::1:0",
        "fd00:2:0:0:1::9",
        "2001:db8:113::11",
    ],
)
def test_neighbours_of_bad_sources_are_clients(relay: Rig, host: str) -> None:
    sent = frame((host, 40000), VIP_V6, request(token()))
    assert relay.send(sent).reason is Reason.PUNT_FIRST


@pytest.mark.parametrize("mark", [at * 8 for at in range(16)])
def test_every_byte_of_a_client_address_counts(relay: Rig, mark: int) -> None:
    flow_v6(relay)
    other = str(IPv6Address(int(IPv6Address(CLIENT_V6[0])) ^ 1 << mark))
    assert relay.send(frame((other, CLIENT_V6[1]), VIP_V6, b"\xff")).reason is Reason.DROP_NO_FLOW


@pytest.mark.parametrize("header", [20, 40], ids=["to_v4", "to_v6"])
@pytest.mark.parametrize(("client", "vip", "local"), [(CLIENT, 1, VIP), (CLIENT_V6, 3, VIP_V6)])
def test_mtu_is_that_of_the_other_leg(
    relay: Rig, client: Address, vip: int, local: Address, header: int
) -> None:
    relay.install(client, vip, endpoint=ENDPOINT_V6 if header == 40 else ENDPOINT, nexthop_in=SMALL)
    largest = 576 - header - 8 - 38
    assert relay.send(frame(client, local, bytes(largest))).reason is Reason.FORWARD
    assert relay.send(frame(client, local, bytes(largest + 1))).reason is Reason.PUNT_NEXTHOP


@pytest.mark.parametrize(("client", "vip", "public"), [(CLIENT, 1, VIP), (CLIENT_V6, 3, VIP_V6)])
@pytest.mark.parametrize(("endpoint", "ours"), [(ENDPOINT, OURS), (ENDPOINT_V6, OURS_V6)])
def test_mtu_is_that_of_the_client_on_the_way_back(
    relay: Rig, client: Address, vip: int, public: Address, endpoint: Address, ours: Address
) -> None:
    relay.install(client, vip, endpoint=endpoint, nexthop_out=SMALL)
    largest = 576 - (40 if vip == 3 else 20) - 8
    for size, reason in ((largest, Reason.RETURN), (largest + 1, Reason.PUNT_NEXTHOP)):
        sent = frame(endpoint, ours, spp_header(client, public) + bytes(size))
        assert relay.send(sent, INNER_SIDE).reason is reason


def test_unresolved_nexthop_is_handed_up_unmodified(relay: Rig) -> None:
    key = flow_v6(relay, nexthop_in=UNRESOLVED, nexthop_out=UNRESOLVED)
    up, down = frame(CLIENT_V6, VIP_V6, DTLS), frame(ENDPOINT_V6, OURS_V6, REPLY)
    for sent, interface in ((up, OUTER), (down, INNER_SIDE)):
        outcome = relay.send(sent, interface)
        assert (outcome.reason, outcome.data) == (Reason.PUNT_NEXTHOP, sent)
    assert (relay.flow(key).packets_up, relay.flow(key).packets_down) == (1, 1)


@pytest.mark.parametrize("vip", [1, 2, 3, 4])
def test_a_flow_of_one_vip_is_none_of_the_others(relay: Rig, vip: int) -> None:
    addresses = {1: VIP, 2: NATTED_LOCAL, 3: VIP_V6, 4: NATTED_LOCAL_V6}
    client = CLIENT_V6 if vip > 2 else CLIENT
    relay.install(client, vip)
    for id, local in addresses.items():
        if (id > 2) == (vip > 2):
            wanted = Reason.FORWARD if id == vip else Reason.DROP_NO_FLOW
            assert relay.send(frame(client, local, stun(0x0101))).reason is wanted
