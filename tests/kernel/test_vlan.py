"""VLAN tags: which interface a frame belongs to, and the tags it leaves with."""

import pytest

from relayctl.datapath.libbpf import XDP_DROP, XDP_PASS
from relayctl.reason import Reason
from tests.kernel.packets import (
    CUSTOMER_TAG,
    DTLS,
    SERVICE_TAG,
    Address,
    frame,
    spp_header,
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
    OUTER,
    SPORT,
    STACKED,
    TAGGED,
    TO_CLIENT,
    TO_ENDPOINT,
    VIP,
    VIP_V6,
    Rig,
)

OURS, OURS_V6 = (INNER, SPORT), (INNER_V6, SPORT)
PRIORITY = 0xE000  # in the tag, beside the id
DROP_ELIGIBLE = 0x1000
families = pytest.mark.parametrize(
    ("client", "vip", "local", "endpoint", "ours"),
    [
        pytest.param(CLIENT, 1, VIP, ENDPOINT, OURS, id="v4_to_v4"),
        pytest.param(CLIENT, 1, VIP, ENDPOINT_V6, OURS_V6, id="v4_to_v6"),
        pytest.param(CLIENT_V6, 3, VIP_V6, ENDPOINT, OURS, id="v6_to_v4"),
        pytest.param(CLIENT_V6, 3, VIP_V6, ENDPOINT_V6, OURS_V6, id="v6_to_v6"),
    ],
)


@pytest.mark.parametrize(
    ("interface", "tags", "client_leg", "endpoint_leg"),
    [
        pytest.param(OUTER, (), True, False, id="outer"),
        pytest.param(OUTER, (5,), True, False, id="outer_vlan"),
        pytest.param(OUTER, (6, 7), False, True, id="inner_stacked_on_the_outer_carrier"),
        pytest.param(OUTER, (6,), False, False, id="outer_tag_of_two"),
        pytest.param(OUTER, (7,), False, False, id="inner_tag_of_two"),
        pytest.param(OUTER, (7, 6), False, False, id="exchanged"),
        pytest.param(OUTER, (5, 7), False, False, id="one_more_than_known"),
        pytest.param(OUTER, (8,), False, False, id="vlan_of_another_carrier"),
        pytest.param(OUTER, (9,), False, False, id="unknown_vlan"),
        pytest.param(OUTER, (4095,), False, False, id="largest_id"),
        pytest.param(OUTER, (5 + 256,), False, False, id="same_low_byte"),
        pytest.param(INNER_SIDE, (), False, True, id="inner"),
        pytest.param(INNER_SIDE, (8,), True, True, id="both_on_the_inner_carrier"),
        pytest.param(INNER_SIDE, (5,), False, False, id="outer_vlan_elsewhere"),
        pytest.param(OUTER, (0,), True, False, id="priority_tag"),
        pytest.param(OUTER, (PRIORITY,), True, False, id="priority_tag_of_7"),
        pytest.param(OUTER, (PRIORITY | DROP_ELIGIBLE | 5,), True, False, id="priority_and_id"),
        pytest.param(OUTER, (5, 0), True, False, id="priority_tag_inside"),
        pytest.param(OUTER, (0, 5), True, False, id="priority_tag_outside"),
        pytest.param(OUTER, (0, 0), True, False, id="two_priority_tags"),
        pytest.param(
            OUTER, (PRIORITY | 6, DROP_ELIGIBLE | 7), False, True, id="priorities_in_two_tags"
        ),
    ],
)
@families
def test_ids_tell_the_interface(
    relay: Rig,
    interface: str,
    tags: tuple[int, ...],
    client_leg: bool,
    endpoint_leg: bool,
    client: Address,
    vip: int,
    local: Address,
    endpoint: Address,
    ours: Address,
) -> None:
    relay.install(client, vip, endpoint=endpoint)
    up = relay.send(frame(client, local, DTLS, tags=tags), interface)
    assert up.reason is (Reason.FORWARD if client_leg else Reason.DROP_WRONG_SIDE)
    sent = frame(endpoint, ours, spp_header(client, local) + DTLS, tags=tags)
    down = relay.send(sent, interface)
    assert down.reason is (Reason.RETURN if endpoint_leg else Reason.DROP_WRONG_SIDE)


@pytest.mark.parametrize(
    "kinds",
    [
        (CUSTOMER_TAG, CUSTOMER_TAG),
        (SERVICE_TAG, SERVICE_TAG),
        (CUSTOMER_TAG, SERVICE_TAG),
        (SERVICE_TAG, CUSTOMER_TAG),
    ],
)
def test_either_kind_of_tag_is_read(relay: Rig, kinds: tuple[int, int]) -> None:
    relay.install()
    one = frame(CLIENT, VIP, DTLS, tags=(5,), tag_kinds=kinds)
    assert relay.send(one).reason is Reason.FORWARD
    two = frame(ENDPOINT, OURS, spp_header(CLIENT, VIP) + DTLS, tags=(6, 7), tag_kinds=kinds)
    assert relay.send(two).reason is Reason.RETURN


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(CLIENT, VIP, DTLS, tags=(6, 7, 5)), id="three_tags"),
        pytest.param(frame(CLIENT, VIP, DTLS, tags=(0, 0, 5)), id="two_priority_tags_and_one"),
        pytest.param(
            frame(CLIENT, VIP, DTLS, tags=(5,), tag_kinds=(0x9100,)), id="tag_of_another_kind"
        ),
        pytest.param(frame(CLIENT, VIP, DTLS, tags=(5,), protocol=6), id="tcp"),
        pytest.param(frame(CLIENT, ("203.0.113.11", 3478), DTLS, tags=(5,)), id="other_address"),
        pytest.param(frame(CLIENT, VIP, DTLS, tags=(5,))[:17], id="cut_in_the_first_tag"),
        pytest.param(frame(CLIENT, VIP, DTLS, tags=(5, 6))[:21], id="cut_in_the_second_tag"),
        pytest.param(frame(CLIENT, VIP, DTLS, tags=(5,))[:18], id="nothing_behind_the_tag"),
        pytest.param(frame(CLIENT, VIP, DTLS, tags=(5,))[:37], id="cut_in_the_ip_header"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, tags=(5,))[:57], id="cut_in_the_ipv6_header"),
        pytest.param(frame(CLIENT, VIP, DTLS)[:12] + b"\x81\x00\x00\x05\x08\x06", id="arp"),
    ],
)
@pytest.mark.parametrize("interface", [OUTER, INNER_SIDE])
def test_what_is_not_ours_passes_untouched(relay: Rig, sent: bytes, interface: str) -> None:
    relay.install()
    outcome = relay.send(sent, interface)
    assert (outcome.reason, outcome.verdict) == (Reason.PASS_NOT_OURS, XDP_PASS)
    assert outcome.data == sent


NEXTHOP_TAGS = {TO_ENDPOINT: (), TAGGED: (5,), STACKED: (6, 7)}


@pytest.mark.parametrize("tags", [(), (5,), (6, 7)], ids=lambda tags: f"{len(tags)}_in")
@pytest.mark.parametrize("nexthop", NEXTHOP_TAGS, ids=lambda n: f"{len(NEXTHOP_TAGS[n])}_out")
@families
def test_frame_leaves_with_the_tags_of_its_nexthop(
    relay: Rig,
    tags: tuple[int, ...],
    nexthop: int,
    client: Address,
    vip: int,
    local: Address,
    endpoint: Address,
    ours: Address,
) -> None:
    out = TO_CLIENT if nexthop == TO_ENDPOINT else nexthop
    relay.install(client, vip, endpoint=endpoint, nexthop_in=nexthop, nexthop_out=out)
    inner = spp_header(client, local) + DTLS
    marked = tuple(PRIORITY | tag for tag in tags)  # a priority is not carried on
    wanted = NEXTHOP_TAGS[nexthop]
    macs = ENDPOINT_MACS[1], ENDPOINT_MACS[0]

    if tags != (6, 7):
        up = relay.send(frame(client, local, DTLS, tags=marked, tos=0xB9, ttl=9))
        assert up.reason is Reason.FORWARD
        there = frame(ours, endpoint, inner, macs=macs, tags=wanted, tos=0xB9, ttl=8)
        assert up.data == there

    if tags != (5,):
        interface = OUTER if tags else INNER_SIDE
        sent = frame(endpoint, ours, inner, tags=marked, tos=0x2E, ttl=9)
        down = relay.send(sent, interface)
        assert down.reason is Reason.RETURN
        if out == TO_CLIENT:
            macs = CLIENT_MACS[1], CLIENT_MACS[0]
        back = frame(local, client, DTLS, macs=macs, tags=wanted, tos=0x2E, ttl=8)
        assert down.data == back


def test_tags_do_not_count_in_the_mtu(relay: Rig) -> None:
    relay.install(nexthop_in=STACKED)
    largest = 1500 - 28 - 38
    assert relay.send(frame(CLIENT, VIP, bytes(largest), tags=(5,))).reason is Reason.FORWARD
    one_more = frame(CLIENT, VIP, bytes(largest + 1), tags=(5,))
    assert relay.send(one_more).reason is Reason.PUNT_NEXTHOP


@pytest.mark.parametrize(
    ("tags", "nexthop", "grown"),
    [
        pytest.param((), TO_ENDPOINT, 0, id="none"),
        pytest.param((), TAGGED, 4, id="one_out"),
        pytest.param((), STACKED, 8, id="two_out"),
        pytest.param((5,), TO_ENDPOINT, -4, id="one_in"),
        pytest.param((5,), STACKED, 4, id="one_in_two_out"),
        pytest.param((0, 0), TO_ENDPOINT, -8, id="two_in"),
    ],
)
@families
def test_growth_takes_exactly_the_head_room_it_needs(
    relay: Rig,
    tags: tuple[int, ...],
    nexthop: int,
    grown: int,
    client: Address,
    vip: int,
    local: Address,
    endpoint: Address,
    ours: Address,
) -> None:
    relay.install(client, vip, endpoint=endpoint, nexthop_in=nexthop)
    grown += 38 + 20 * (":" in endpoint[0]) - 20 * (":" in client[0])
    free = 256 - 40  # the kernel keeps 40 bytes of a test run's head room for itself
    enough = (free - grown) // 4 * 4  # metadata that leaves as much; multiples of 4
    sent = frame(client, local, DTLS, tags=tags)
    outcome = relay.send(sent, metadata=enough)
    assert outcome.reason is Reason.FORWARD
    there = take_apart(outcome.data)
    assert (there.destination, there.payload) == (endpoint, spp_header(client, local) + DTLS)
    refused = relay.send(sent, metadata=enough + 4)
    assert (refused.reason, refused.verdict) == (Reason.DROP_HEADROOM, XDP_DROP)
    assert refused.data == sent


def test_tagged_packet_is_handed_up_as_it_came(relay: Rig) -> None:
    for sent in (
        frame(CLIENT, VIP, DTLS, tags=(PRIORITY | 5,)),
        frame(CLIENT_V6, VIP_V6, DTLS, tags=(5,)),
        frame(CLIENT_V6, VIP_V6, DTLS, tags=(5,), ttl=1),
    ):
        outcome = relay.send(sent)
        assert outcome.verdict == XDP_PASS
        assert outcome.reason in (Reason.PUNT_ORPHAN, Reason.PUNT_ODD)
        assert outcome.data == sent
