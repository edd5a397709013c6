"""Transceiver to relay: what becomes of a packet that comes to our inner ports."""

import pytest

from relayctl.datapath.libbpf import XDP_DROP, XDP_PASS, XDP_REDIRECT
from relayctl.flow import CONFIRMED
from relayctl.reason import Reason
from tests.kernel.packets import DTLS, Address, frame, rtp, spp_header, stun, take_apart
from tests.kernel.rig import (
    CLIENT,
    CLIENT_MACS,
    ENDPOINT,
    INNER,
    INNER_SIDE,
    NATTED_LOCAL,
    NATTED_PUBLIC,
    NO_PORT,
    SPORT,
    UNRESOLVED,
    VIP,
    Rig,
    now,
)

OURS = (INNER, SPORT)


def reply(
    payload: bytes = DTLS,
    *,
    client: Address = CLIENT,
    vip: Address = VIP,
    sender: Address = ENDPOINT,
    sum: int | None = None,
    ttl: int = 64,
) -> bytes:
    return frame(sender, OURS, spp_header(client, vip) + payload, sum=sum, ttl=ttl, tos=0x2E)


def test_known_flow_goes_to_its_client_without_the_spp_header(relay: Rig) -> None:
    relay.install()
    outcome = relay.send(reply(rtp(1), ttl=33), INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.RETURN, XDP_REDIRECT)
    assert outcome.data == frame(
        VIP, CLIENT, rtp(1), macs=(CLIENT_MACS[1], CLIENT_MACS[0]), ttl=32, tos=0x2E
    )


def test_answer_comes_from_the_local_vip_behind_a_nat(relay: Rig) -> None:
    relay.install(vip=2)
    outcome = relay.send(reply(vip=NATTED_PUBLIC), INNER_SIDE)
    assert outcome.reason is Reason.RETURN
    assert take_apart(outcome.data).source == NATTED_LOCAL
    assert take_apart(outcome.data).payload == DTLS


def test_local_vip_behind_a_nat_is_foreign_in_a_header(relay: Rig) -> None:
    relay.install(vip=2)
    outcome = relay.send(reply(vip=NATTED_LOCAL), INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_FOREIGN_VIP, XDP_DROP)


def test_absent_checksum_stays_absent(relay: Rig) -> None:
    relay.install()
    outcome = relay.send(reply(sum=0), INNER_SIDE)
    assert take_apart(outcome.data).sum == 0


def test_endpoint_packet_is_counted_and_stamped(relay: Rig) -> None:
    key = relay.install(packets_down=4, bytes_down=1000)
    before = now()
    relay.send(reply(), INNER_SIDE)
    flow = relay.flow(key)
    assert (flow.packets_down, flow.bytes_down) == (5, 1000 + len(DTLS))
    assert (flow.packets_up, flow.bytes_up, flow.seen_up, flow.ssrc) == (0, 0, 0, 0)
    assert before <= flow.seen_down <= now()


def test_rtp_of_the_endpoint_writes_no_ssrc(relay: Rig) -> None:
    key = relay.install()
    relay.send(reply(rtp(77)), INNER_SIDE)
    assert relay.flow(key).ssrc == 0


@pytest.mark.parametrize(
    ("payload", "flags"),
    [
        pytest.param(stun(0x0101), 0, id="stun"),
        pytest.param(bytes([19]), 0, id="last_before_dtls"),
        pytest.param(bytes([20]), CONFIRMED, id="dtls"),
        pytest.param(rtp(1), CONFIRMED, id="rtp"),
    ],
)
def test_first_payload_but_stun_confirms_the_flow(relay: Rig, payload: bytes, flags: int) -> None:
    key = relay.install()
    assert relay.send(reply(payload), INNER_SIDE).reason is Reason.RETURN
    assert relay.flow(key).flags == flags


def test_confirmation_leaves_other_flags_alone(relay: Rig) -> None:
    key = relay.install(flags=0x80)
    relay.send(reply(), INNER_SIDE)
    assert relay.flow(key).flags == CONFIRMED | 0x80


def test_stun_does_not_take_the_confirmation_back(relay: Rig) -> None:
    key = relay.install(flags=CONFIRMED | 0x80)
    relay.send(reply(stun()), INNER_SIDE)
    assert relay.flow(key).flags == CONFIRMED | 0x80


@pytest.mark.parametrize(
    "sender",
    [
        pytest.param(("10.2.0.3", ENDPOINT[1]), id="other_host"),
        pytest.param((ENDPOINT[0], 5001), id="other_port"),
    ],
)
def test_another_endpoint_is_handed_up_and_changes_nothing(relay: Rig, sender: Address) -> None:
    key = relay.install()
    before = relay.flow(key)
    sent = reply(sender=sender)
    outcome = relay.send(sent, INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_RETURN, XDP_PASS)
    assert outcome.data == sent
    assert relay.flow(key) == before


def test_unknown_flow_is_handed_up_unmodified(relay: Rig) -> None:
    sent = reply()
    outcome = relay.send(sent, INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_RETURN, XDP_PASS)
    assert outcome.data == sent


def test_flow_belongs_to_one_vip(relay: Rig) -> None:
    relay.install(vip=1)
    assert relay.send(reply(vip=NATTED_PUBLIC), INNER_SIDE).reason is Reason.PUNT_RETURN


@pytest.mark.parametrize("host", ["10.2.1.2", "10.1.255.255", "192.0.2.9", "10.76.0.1"])
def test_sender_outside_the_allowed_networks_is_dropped(relay: Rig, host: str) -> None:
    relay.install(endpoint=(host, 5000))
    outcome = relay.send(reply(sender=(host, 5000)), INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_NOT_AN_ENDPOINT, XDP_DROP)


@pytest.mark.parametrize(
    "vip",
    [
        pytest.param((VIP[0], 3479), id="other_port"),
        pytest.param(("203.0.113.11", 3478), id="other_host"),
    ],
)
def test_vip_that_is_not_ours_is_dropped(relay: Rig, vip: Address) -> None:
    relay.install()
    assert relay.send(reply(vip=vip), INNER_SIDE).reason is Reason.DROP_FOREIGN_VIP


def corrupt(at: int, byte: int) -> bytes:
    payload = bytearray(spp_header(CLIENT, VIP) + DTLS)
    payload[at] = byte
    return bytes(payload)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty"),
        pytest.param(DTLS, id="no_header"),
        pytest.param(spp_header(CLIENT, VIP), id="nothing_behind_the_header"),
        pytest.param(corrupt(0, 0x57), id="magic_high"),
        pytest.param(corrupt(1, 0xED), id="magic_low"),
        pytest.param(corrupt(2, 0x20), id="ipv6_client"),
        pytest.param(corrupt(11, 1), id="last_zero_of_client"),
        pytest.param(corrupt(12, 0), id="client_not_mapped"),
        pytest.param(corrupt(13, 0), id="client_half_mapped"),
        pytest.param(corrupt(18, 0x20), id="ipv6_proxy"),
        pytest.param(corrupt(28, 0), id="proxy_not_mapped"),
    ],
)
def test_whatever_is_not_spp_is_dropped(relay: Rig, payload: bytes) -> None:
    relay.install()
    outcome = relay.send(frame(ENDPOINT, OURS, payload), INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_NOT_SPP, XDP_DROP)


def test_padding_is_no_payload_behind_the_header(relay: Rig) -> None:
    relay.install()
    sent = frame(ENDPOINT, OURS, spp_header(CLIENT, VIP), padding=b"\x16")
    assert relay.send(sent, INNER_SIDE).reason is Reason.DROP_NOT_SPP


def test_one_byte_behind_the_header_is_enough(relay: Rig) -> None:
    relay.install()
    outcome = relay.send(reply(b"\x80"), INNER_SIDE)
    assert (outcome.reason, take_apart(outcome.data).payload) == (Reason.RETURN, b"\x80")


def test_unresolved_nexthop_is_handed_up_unmodified_and_still_confirms(relay: Rig) -> None:
    key = relay.install(nexthop_out=UNRESOLVED)
    sent = reply()
    outcome = relay.send(sent, INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_NEXTHOP, XDP_PASS)
    assert outcome.data == sent
    assert (relay.flow(key).packets_down, relay.flow(key).flags) == (1, CONFIRMED)


def test_missing_egress_port_drops(relay: Rig) -> None:
    relay.install(nexthop_out=NO_PORT)
    outcome = relay.send(reply(), INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_REDIRECT, XDP_DROP)
