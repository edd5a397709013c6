"""Transparent mode: endpoints see their clients' addresses, and only one address changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relayctl.datapath import xdp
from relayctl.datapath.libbpf import XDP_DROP, XDP_PASS, XDP_REDIRECT
from relayctl.datapath.spec import Interface, Role, Vip
from relayctl.flow import CONFIRMED, FlowKey
from relayctl.reason import Reason
from tests.kernel import rig
from tests.kernel.conftest import veth
from tests.kernel.packets import (
    DTLS,
    EXTENSIONS,
    SERVICE_TAG,
    Address,
    frame,
    request,
    rtp,
    stun,
    take_apart,
    udp_checksum,
)
from tests.kernel.rig import (
    CLIENT,
    CLIENT_MACS,
    CLIENT_V6,
    ENDPOINT,
    ENDPOINT_MACS,
    ENDPOINT_V6,
    NATTED_LOCAL,
    NATTED_LOCAL_V6,
    NATTED_PUBLIC,
    NATTED_PUBLIC_V6,
    NO_PORT,
    SMALL,
    STACKED,
    TAGGED,
    UNRESOLVED,
    VIP_V6,
    Rig,
    token,
)

OUTER, INNER_SIDE, BOTH = "outer1", "inner1", "both1"
families = pytest.mark.parametrize(
    ("client", "vip", "local", "endpoint"),
    [
        pytest.param(CLIENT, 2, NATTED_LOCAL, ENDPOINT, id="v4"),
        pytest.param(CLIENT_V6, 4, NATTED_LOCAL_V6, ENDPOINT_V6, id="v6"),
    ],
)
there = ENDPOINT_MACS[1], ENDPOINT_MACS[0]
back = CLIENT_MACS[1], CLIENT_MACS[0]


@pytest.fixture(scope="module")
def other(bpffs: Path, namespace: None) -> Iterator[Rig]:
    """A second program, on interfaces of its own."""
    for name in (OUTER, INNER_SIDE, BOTH):
        veth(name)
    roles = {OUTER: Role.OUTER, INNER_SIDE: Role.INNER, BOTH: Role.BOTH}
    interfaces = (
        *(
            Interface(name, rig.ifindex(name), port, role)
            for port, (name, role) in enumerate(roles.items(), 1)
        ),
        Interface("outer1.5", 9004, 4, Role.OUTER, rig.ifindex(OUTER), (5, 0)),
        Interface("inner1.6.7", 9005, 5, Role.INNER, rig.ifindex(INNER_SIDE), (6, 7)),
    )
    vips = (Vip(2, NATTED_PUBLIC, NATTED_LOCAL), Vip(4, NATTED_PUBLIC_V6, NATTED_LOCAL_V6))
    changes = {"vips": vips, "interfaces": interfaces, "inner_addresses": ()}
    spec = rig.spec(bpffs, "transparent", transparent=True, **changes)
    xdp.load(spec)
    datapath = xdp.XdpDatapath.open(spec.pins)
    datapath.attach(spec.interfaces)
    yield Rig(datapath, spec.pins)
    datapath.close()
    xdp.unload(spec.instance, spec.bpffs)


@pytest.fixture
def plain(other: Rig) -> Rig:
    other.reset()
    return other


def install(relay: Rig, client: Address, vip: int, endpoint: Address, **changes: Any) -> FlowKey:
    return relay.install(client, vip, endpoint=endpoint, **changes)


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


def test_takeover_is_the_same(plain: Rig) -> None:
    own = token()
    key = install(plain, CLIENT, 2, ENDPOINT, token=own[:8].encode())
    contender = frame(CLIENT, NATTED_LOCAL, request(token(("10.2.0.3", 5000))))
    assert plain.send(contender, OUTER).reason is Reason.PUNT_CONTENDED
    answer = frame(CLIENT, NATTED_LOCAL, stun(0x0101))
    assert plain.send(answer, OUTER).reason is Reason.PUNT_ANSWER
    assert plain.flow(key).token == own[:8].encode()
