"""Client to relay: what becomes of a packet that comes to a VIP."""

from pathlib import Path
from typing import Any

import pytest

from relayctl.datapath import xdp
from relayctl.datapath.libbpf import XDP_DROP, XDP_PASS, XDP_REDIRECT
from relayctl.flow import CONFIRMED
from relayctl.reason import Reason
from tests.kernel.packets import (
    COOKIE,
    DTLS,
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
    ENDPOINT,
    ENDPOINT_MACS,
    INNER,
    INNER_V6,
    NATTED_LOCAL,
    NATTED_PUBLIC,
    NO_PORT,
    SMALL,
    SPORT,
    UNRESOLVED,
    VIP,
    VIP_V6,
    Rig,
    now,
    spec,
    token,
)

OWN = token()  # of the flow, where a test gives it one


def test_known_flow_goes_to_its_endpoint_behind_an_spp_header(relay: Rig) -> None:
    relay.install()
    outcome = relay.send(frame(CLIENT, VIP, rtp(1), ttl=57, tos=0xB9, id=99))
    assert (outcome.reason, outcome.verdict) == (Reason.FORWARD, XDP_REDIRECT)
    assert outcome.data == frame(
        (INNER, SPORT),
        ENDPOINT,
        spp_header(CLIENT, VIP) + rtp(1),
        macs=(ENDPOINT_MACS[1], ENDPOINT_MACS[0]),
        ttl=56,
        tos=0xB9,
    )


def test_spp_header_names_the_public_vip_behind_a_nat(relay: Rig) -> None:
    relay.install(vip=2)
    outcome = relay.send(frame(CLIENT, NATTED_LOCAL, DTLS))
    assert outcome.reason is Reason.FORWARD
    assert take_apart(outcome.data).payload == spp_header(CLIENT, NATTED_PUBLIC) + DTLS


def test_flow_belongs_to_one_vip(relay: Rig) -> None:
    relay.install(vip=2)
    assert relay.send(frame(CLIENT, VIP, DTLS)).reason is Reason.PUNT_ORPHAN


def test_absent_checksum_stays_absent(relay: Rig) -> None:
    relay.install()
    outcome = relay.send(frame(CLIENT, VIP, DTLS, sum=0))
    assert take_apart(outcome.data).sum == 0


def test_wrong_checksum_stays_wrong(relay: Rig) -> None:
    relay.install()
    outcome = relay.send(frame(CLIENT, VIP, DTLS, sum=1))
    with pytest.raises(AssertionError, match="UDP checksum"):
        take_apart(outcome.data)


def test_ethernet_padding_is_no_payload(relay: Rig) -> None:
    key = relay.install()
    outcome = relay.send(frame(CLIENT, VIP, b"\x80", padding=bytes(range(20, 37))))
    assert outcome.reason is Reason.FORWARD
    assert take_apart(outcome.data).payload == spp_header(CLIENT, VIP) + b"\x80"
    assert relay.flow(key).bytes_up == 1
    assert relay.flow(key).ssrc == 0


def test_client_packet_is_counted_and_stamped(relay: Rig) -> None:
    key = relay.install(packets_up=4, bytes_up=1000)
    before = now()
    relay.send(frame(CLIENT, VIP, DTLS))
    flow = relay.flow(key)
    assert (flow.packets_up, flow.bytes_up) == (5, 1000 + len(DTLS))
    assert (flow.packets_down, flow.bytes_down, flow.seen_down, flow.flags) == (0, 0, 0, 0)
    assert before <= flow.seen_up <= now()


def test_client_packet_leaves_the_rest_of_its_flow_alone(relay: Rig) -> None:
    rest: dict[str, Any] = {
        "token": b"IWwJ+/iU",
        "back": 3,
        "flags": CONFIRMED,
        "seen_down": 11,
        "contended": 12,
        "packets_down": 13,
        "born": 14,
        "answers": 15,
        "bytes_down": 16,
        "cluster": 17,
    }
    key = relay.install(**rest)
    relay.send(frame(CLIENT, VIP, DTLS))
    flow = relay.flow(key)
    assert {name: getattr(flow, name) for name in rest} == rest


def test_first_rtp_packet_writes_its_ssrc(relay: Rig) -> None:
    key = relay.install()
    relay.send(frame(CLIENT, VIP, rtp(0x11223344)))
    relay.send(frame(CLIENT, VIP, rtp(0x55667788)))
    assert relay.flow(key).ssrc == 0x11223344


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(rtp(5, kind=200), id="rtcp_sender_report"),
        pytest.param(rtp(5, kind=223), id="last_rtcp_type"),
        pytest.param(rtp(5)[:11], id="cut_rtp"),
        pytest.param(DTLS, id="dtls"),
        pytest.param(stun(0x0101), id="stun"),
    ],
)
def test_nothing_but_rtp_writes_an_ssrc(relay: Rig, payload: bytes) -> None:
    key = relay.install()
    assert relay.send(frame(CLIENT, VIP, payload)).reason is Reason.FORWARD
    assert relay.flow(key).ssrc == 0


@pytest.mark.parametrize("kind", [0, 127, 128 + 63, 224])
def test_every_rtp_payload_type_writes_an_ssrc(relay: Rig, kind: int) -> None:
    key = relay.install()
    relay.send(frame(CLIENT, VIP, rtp(9, kind=kind)))
    assert relay.flow(key).ssrc == 9


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty"),
        pytest.param(request(OWN), id="binding_request"),
        pytest.param(stun(0x0101), id="success_response"),
        pytest.param(b"\xff", id="other"),
        pytest.param(bytes(1400), id="largest"),
    ],
)
def test_known_flow_carries_whatever_it_sends(relay: Rig, payload: bytes) -> None:
    relay.install(token=OWN[:8].encode())
    outcome = relay.send(frame(CLIENT, VIP, payload))
    assert outcome.reason is Reason.FORWARD
    assert take_apart(outcome.data).payload == spp_header(CLIENT, VIP) + payload


def test_ttl_2_is_the_last_that_goes_on(relay: Rig) -> None:
    relay.install()
    outcome = relay.send(frame(CLIENT, VIP, DTLS, ttl=2))
    assert (outcome.reason, take_apart(outcome.data).ttl) == (Reason.FORWARD, 1)


def test_unresolved_nexthop_is_handed_up_unmodified_and_counted_in_its_flow(relay: Rig) -> None:
    key = relay.install(nexthop_in=UNRESOLVED)
    sent = frame(CLIENT, VIP, DTLS)
    outcome = relay.send(sent)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_NEXTHOP, XDP_PASS)
    assert outcome.data == sent
    assert relay.flow(key).packets_up == 1


@pytest.mark.parametrize("index", [0, 4096, 65535])
def test_nexthop_that_cannot_be_is_handed_up(relay: Rig, index: int) -> None:
    relay.install(nexthop_in=index)
    assert relay.send(frame(CLIENT, VIP, DTLS)).reason is Reason.PUNT_NEXTHOP


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        pytest.param(576 - 28 - 38, Reason.FORWARD, id="fits"),
        pytest.param(576 - 28 - 38 + 1, Reason.PUNT_NEXTHOP, id="one_byte_more"),
    ],
)
def test_packet_beyond_the_mtu_is_handed_up(relay: Rig, size: int, reason: Reason) -> None:
    relay.install(nexthop_in=SMALL)
    sent = frame(CLIENT, VIP, bytes(size))
    outcome = relay.send(sent)
    assert outcome.reason is reason
    assert (outcome.data == sent) == (reason is Reason.PUNT_NEXTHOP)


def test_missing_egress_port_drops(relay: Rig) -> None:
    relay.install(nexthop_in=NO_PORT)
    outcome = relay.send(frame(CLIENT, VIP, DTLS))
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_REDIRECT, XDP_DROP)


def test_no_head_room_drops(relay: Rig) -> None:
    relay.install()
    outcome = relay.send(frame(CLIENT, VIP, DTLS), metadata=216)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_HEADROOM, XDP_DROP)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        pytest.param(request(token()), Reason.PUNT_FIRST, id="binding_request"),
        pytest.param(
            request(token(), before=attribute(0x8022, b"ice-lite")),
            Reason.PUNT_FIRST,
            id="software",
        ),
        pytest.param(
            request(token(), before=attribute(0x8022, bytes(990))), Reason.PUNT_FIRST, id="large"
        ),
        pytest.param(stun(), Reason.DROP_STUN_SHAPE, id="without_a_token"),
        pytest.param(stun(0x0101), Reason.DROP_NO_FLOW, id="success_response"),
        pytest.param(stun(0x0011), Reason.DROP_NO_FLOW, id="indication"),
        pytest.param(stun(cookie=COOKIE + 1), Reason.DROP_NO_FLOW, id="wrong_cookie"),
        pytest.param(stun(length=4), Reason.DROP_NO_FLOW, id="stun_longer_than_udp"),
        pytest.param(stun() + bytes(4), Reason.DROP_NO_FLOW, id="udp_longer_than_stun"),
        pytest.param(stun(attributes=bytes(3)), Reason.DROP_NO_FLOW, id="no_multiple_of_4"),
        pytest.param(stun()[:19], Reason.DROP_NO_FLOW, id="cut_stun"),
        pytest.param(bytes([20]), Reason.PUNT_ORPHAN, id="first_dtls_byte"),
        pytest.param(bytes([63]), Reason.PUNT_ORPHAN, id="last_dtls_byte"),
        pytest.param(bytes([19]), Reason.DROP_NO_FLOW, id="zrtp"),
        pytest.param(bytes([64]), Reason.DROP_NO_FLOW, id="turn_channel"),
        pytest.param(bytes([127]), Reason.DROP_NO_FLOW, id="below_rtp"),
        pytest.param(bytes([128]), Reason.PUNT_ORPHAN, id="first_rtp_byte"),
        pytest.param(bytes([191]), Reason.PUNT_ORPHAN, id="last_rtp_byte"),
        pytest.param(bytes([192]), Reason.DROP_NO_FLOW, id="above_rtp"),
        pytest.param(rtp(5, kind=200), Reason.PUNT_ORPHAN, id="rtcp"),
        pytest.param(b"", Reason.DROP_NO_FLOW, id="empty"),
    ],
)
def test_without_a_flow_the_payload_decides(relay: Rig, payload: bytes, reason: Reason) -> None:
    sent = frame(CLIENT, VIP, payload)
    outcome = relay.send(sent)
    assert outcome.reason is reason
    assert outcome.verdict == (XDP_DROP if reason.name.startswith("DROP") else XDP_PASS)
    assert outcome.data == sent


def test_padding_does_not_complete_a_binding_request(relay: Rig) -> None:
    sent = frame(CLIENT, VIP, stun(length=0)[:10], padding=stun()[10:])
    assert relay.send(sent).reason is Reason.DROP_NO_FLOW


def test_padding_does_not_complete_a_username(relay: Rig) -> None:
    whole = request(token())
    cut = whole[:2] + (28).to_bytes(2, "big") + whole[4:48]
    assert relay.send(frame(CLIENT, VIP, cut, padding=whole[48:])).reason is Reason.DROP_STUN_SHAPE


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("0.0.0.0", id="unspecified"),
        pytest.param("0.255.0.1", id="this_network"),
        pytest.param("127.0.0.1", id="loopback"),
        pytest.param("169.254.1.1", id="link_local"),
        pytest.param("224.0.0.1", id="multicast"),
        pytest.param("255.255.255.255", id="broadcast"),
        pytest.param("10.2.0.9", id="allowed_network"),
        pytest.param("10.77.255.255", id="second_allowed_network"),
        pytest.param(INNER, id="inner_address"),
        pytest.param("10.3.0.2", id="own"),
        pytest.param(VIP[0], id="vip"),
        pytest.param(NATTED_PUBLIC[0], id="public_vip"),
        pytest.param(NATTED_LOCAL[0], id="local_vip"),
    ],
)
def test_address_that_no_client_has_is_dropped(relay: Rig, host: str) -> None:
    for payload in (request(token()), DTLS, b""):
        outcome = relay.send(frame((host, 40000), VIP, payload))
        assert (outcome.reason, outcome.verdict) == (Reason.DROP_BAD_SOURCE, XDP_DROP)


def test_sources_are_not_looked_at_where_there_is_a_flow(relay: Rig) -> None:
    relay.install(("10.2.0.9", 40000))
    assert relay.send(frame(("10.2.0.9", 40000), VIP, DTLS)).reason is Reason.FORWARD


def test_port_0_is_no_source(relay: Rig) -> None:
    sent = frame((CLIENT[0], 0), VIP, request(token()))
    assert relay.send(sent).reason is Reason.DROP_BAD_SOURCE


def test_labs_may_have_clients_among_the_transceivers(
    relay: Rig, bpffs: Path, namespace: None
) -> None:
    lab = spec(bpffs, "lab", allow_inner_clients=True)
    xdp.load(lab)
    datapath = xdp.XdpDatapath.open(lab.pins)
    other = Rig(datapath, lab.pins)
    other.reset()
    for vip, hosts in ((VIP, ("10.2.0.9", INNER)), (VIP_V6, ("fd00:2::9", INNER_V6))):
        client, ours = (frame((host, 40000), vip, request(token())) for host in hosts)
        assert other.send(client).reason is Reason.PUNT_FIRST
        assert other.send(ours).reason is Reason.DROP_BAD_SOURCE
    datapath.close()
    xdp.unload(lab.instance, lab.bpffs)


@pytest.mark.parametrize(
    "host",
    [
        "1.0.0.1",
        "126.0.0.1",
        "128.0.0.1",
        "169.253.0.1",
        "169.255.0.1",
        "223.255.0.1",
        "10.2.1.0",
        "10.76.255.255",
        "10.78.0.0",
    ],
)
def test_neighbours_of_bad_sources_are_clients(relay: Rig, host: str) -> None:
    sent = frame((host, 40000), VIP, request(token()))
    assert relay.send(sent).reason is Reason.PUNT_FIRST
