"""Transparent mode: endpoints see their clients' addresses, and only one address changes."""

from typing import Any

import pytest

from relayctl.datapath.libbpf import XDP_REDIRECT
from relayctl.flow import CONFIRMED
from relayctl.reason import Reason
from tests.kernel import rig
from tests.kernel.packets import (
    DTLS,
    SERVICE_TAG,
    Address,
    frame,
    rtp,
    stun,
    take_apart,
    udp_checksum,
)
from tests.kernel.rig import (
    CLIENT,
    ENDPOINT,
    NATTED_LOCAL,
    NO_PORT,
    SMALL,
    STACKED,
    TAGGED,
    Rig,
)
from tests.kernel.transparent import INNER_SIDE, OUTER, back, families, install, there


@families
@pytest.mark.parametrize("fragment", [0, 0x4000, 0x8000], ids=["may", "dont", "reserved"])
def test_only_the_destination_of_a_client_packet_changes(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address, fragment: int
) -> None:
    key = install(plain, client, vip, endpoint)
    kept: dict[str, Any] = {"label": 0xABCDE}
    if vip == 2:
        kept = {"id": 0xBEEF, "fragment": fragment}
    outcome = plain.send(frame(client, local, rtp(7), ttl=57, tos=0xB9, **kept), OUTER)
    assert (outcome.reason, outcome.verdict) == (Reason.FORWARD, XDP_REDIRECT)
    assert outcome.data == frame(client, endpoint, rtp(7), macs=there, ttl=56, tos=0xB9, **kept)
    flow = plain.flow(key)
    assert (flow.packets_up, flow.bytes_up, flow.ssrc) == (1, len(rtp(7)), 7)


@families
@pytest.mark.parametrize("fragment", [0, 0x4000], ids=["may", "dont"])
def test_only_the_source_of_a_reply_changes(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address, fragment: int
) -> None:
    key = install(plain, client, vip, endpoint)
    kept: dict[str, Any] = {"label": 0xABCDE}
    if vip == 2:
        kept = {"id": 0xBEEF, "fragment": fragment}
    outcome = plain.send(frame(endpoint, client, DTLS, ttl=2, tos=0x2E, **kept), INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.RETURN, XDP_REDIRECT)
    assert outcome.data == frame(local, client, DTLS, macs=back, ttl=1, tos=0x2E, **kept)
    flow = plain.flow(key)
    assert (flow.packets_down, flow.bytes_down, flow.flags) == (1, len(DTLS), CONFIRMED)
    assert flow.seen_down


@families
@pytest.mark.parametrize("wanted", [0xFFFF, 1, 2, 0xFFFE], ids=hex)
@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_sums_at_the_ends(
    plain: Rig,
    client: Address,
    vip: int,
    local: Address,
    endpoint: Address,
    wanted: int,
    before: bool,
) -> None:
    install(plain, client, vip, endpoint)
    ways = [((client, local), (client, endpoint), OUTER), ((endpoint, client), (local, client), "")]
    for sent, rewritten, interface in ways:
        rest = udp_checksum(*(sent if before else rewritten), b"\x80\x6f\0\0") - wanted
        payload = b"\x80\x6f" + (rest % 0xFFFF).to_bytes(2, "big")
        assert udp_checksum(*(sent if before else rewritten), payload) == wanted
        outcome = plain.send(frame(*sent, payload), interface or INNER_SIDE)
        macs = there if interface else back
        assert outcome.data == frame(*rewritten, payload, macs=macs, ttl=63)


def test_absent_sum_stays_absent(plain: Rig) -> None:
    install(plain, CLIENT, 2, ENDPOINT)
    up = plain.send(frame(CLIENT, NATTED_LOCAL, DTLS, sum=0), OUTER)
    assert (up.reason, take_apart(up.data).sum) == (Reason.FORWARD, 0)
    down = plain.send(frame(ENDPOINT, CLIENT, DTLS, sum=0), INNER_SIDE)
    assert (down.reason, take_apart(down.data).sum) == (Reason.RETURN, 0)


@families
@pytest.mark.parametrize("size", [0, 1, 2, 17, 1400])
def test_sizes_and_ttls(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address, size: int
) -> None:
    install(plain, client, vip, endpoint)
    payload = bytes(range(200, 217)) * 83
    for ttl in (2, 128, 129, 255):
        up = plain.send(frame(client, local, payload[:size], ttl=ttl), OUTER)
        assert up.data == frame(client, endpoint, payload[:size], macs=there, ttl=ttl - 1)
        down = plain.send(frame(endpoint, client, payload[:size], ttl=ttl), INNER_SIDE)
        assert down.data == frame(local, client, payload[:size], macs=back, ttl=ttl - 1)


@families
def test_stun_confirms_nothing(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address
) -> None:
    key = install(plain, client, vip, endpoint)
    for payload, flags in ((b"", 0), (stun(0x0101), 0), (DTLS, CONFIRMED), (stun(), CONFIRMED)):
        assert plain.send(frame(endpoint, client, payload), INNER_SIDE).reason is Reason.RETURN
        assert plain.flow(key).flags == flags


@families
def test_mtu_is_that_of_the_packet_itself(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address
) -> None:
    install(plain, client, vip, endpoint, nexthop_in=SMALL, nexthop_out=SMALL)
    largest = 576 - (28 if vip == 2 else 48)
    for size, up, down in (
        (largest, Reason.FORWARD, Reason.RETURN),
        (largest + 1, Reason.PUNT_NEXTHOP, Reason.DROP_REPLY_NOT_CARRIED),
    ):
        assert plain.send(frame(client, local, bytes(size)), OUTER).reason is up
        assert plain.send(frame(endpoint, client, bytes(size)), INNER_SIDE).reason is down


@families
def test_missing_egress_port_drops(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address
) -> None:
    install(plain, client, vip, endpoint, nexthop_in=NO_PORT, nexthop_out=NO_PORT)
    assert plain.send(frame(client, local, DTLS), OUTER).reason is Reason.DROP_REDIRECT
    assert plain.send(frame(endpoint, client, DTLS), INNER_SIDE).reason is Reason.DROP_REDIRECT


TAGS = {rig.TO_ENDPOINT: (), TAGGED: (5,), STACKED: (6, 7)}


@families
@pytest.mark.parametrize("nexthop", TAGS, ids=lambda n: f"{len(TAGS[n])}_out")
def test_tags_come_and_go(
    plain: Rig, client: Address, vip: int, local: Address, endpoint: Address, nexthop: int
) -> None:
    install(plain, client, vip, endpoint, nexthop_in=nexthop, nexthop_out=nexthop)
    tags: tuple[int, ...]
    for tags in ((), (5,)):
        outcome = plain.send(frame(client, local, rtp(1), tags=tags), OUTER)
        wanted = frame(client, endpoint, rtp(1), macs=there, tags=TAGS[nexthop], ttl=63)
        assert outcome.data == wanted
    for tags in ((), (6, 7)):
        kinds = (SERVICE_TAG, SERVICE_TAG)
        sent = frame(endpoint, client, DTLS, tags=tags, tag_kinds=kinds)
        outcome = plain.send(sent, INNER_SIDE)
        assert outcome.data == frame(local, client, DTLS, macs=there, tags=TAGS[nexthop], ttl=63)


@pytest.mark.parametrize(("free", "reason"), [(8, Reason.FORWARD), (4, Reason.DROP_HEADROOM)])
def test_growth_takes_exactly_the_head_room_it_needs(plain: Rig, free: int, reason: Reason) -> None:
    install(plain, CLIENT, 2, ENDPOINT, nexthop_in=STACKED)
    sent = frame(CLIENT, NATTED_LOCAL, DTLS)
    assert plain.send(sent, OUTER, metadata=216 - free).reason is reason
