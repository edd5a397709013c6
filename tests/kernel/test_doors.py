"""Before a leg is walked: what is ours, on which side, readable and plain."""

import pytest

from relayctl.datapath.libbpf import XDP_DROP, XDP_PASS
from relayctl.reason import Reason
from tests.kernel.packets import DTLS, Address, frame, spp_header
from tests.kernel.rig import (
    BOTH,
    CLIENT,
    ENDPOINT,
    INNER,
    INNER_SIDE,
    LOOPBACK,
    NATTED_LOCAL,
    OUTER,
    SPORT,
    VIP,
    Rig,
)

OURS = (INNER, SPORT)
REPLY = spp_header(CLIENT, VIP) + DTLS
IPV6 = frame(CLIENT, VIP, DTLS)[:12] + b"\x86\xdd\x60" + bytes(80)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(CLIENT, ("203.0.113.11", 3478), DTLS), id="other_address"),
        pytest.param(frame(CLIENT, (VIP[0], 53), DTLS), id="other_port_of_a_vip"),
        pytest.param(frame(CLIENT, (NATTED_LOCAL[0], 443), DTLS), id="public_port_at_local_vip"),
        pytest.param(frame(ENDPOINT, (INNER, 5099), REPLY), id="port_below_the_inner_range"),
        pytest.param(frame(ENDPOINT, (INNER, 5116), REPLY), id="port_above_the_inner_range"),
        pytest.param(frame(ENDPOINT, ("10.2.0.8", SPORT), REPLY), id="inner_port_in_transit"),
        pytest.param(frame(CLIENT, VIP, DTLS, protocol=6), id="tcp"),
        pytest.param(frame(CLIENT, VIP, DTLS, protocol=1), id="icmp"),
        pytest.param(frame(CLIENT, ("203.0.113.11", 3478), DTLS, ttl=1), id="odd_in_transit"),
        pytest.param(frame(CLIENT, (VIP[0], 53), DTLS, ttl=1), id="odd_at_another_port"),
        pytest.param(frame(CLIENT, ("203.0.113.11", 1), DTLS, fragment=9), id="fragment"),
        pytest.param(frame(CLIENT, (VIP[0], 53), DTLS, fragment=0x2000), id="first_fragment"),
        pytest.param(IPV6, id="ipv6"),
        pytest.param(frame(CLIENT, VIP, DTLS)[:33], id="cut_in_the_ip_header"),
        pytest.param(bytes(14), id="ethernet_alone"),
        pytest.param(frame(CLIENT, VIP, DTLS).replace(b"\x45", b"\x65", 1), id="version_6"),
    ],
)
@pytest.mark.parametrize("interface", [OUTER, INNER_SIDE])
def test_what_is_not_ours_passes_untouched(relay: Rig, sent: bytes, interface: str) -> None:
    relay.install()
    relay.datapath.beat(0)  # and needs no daemon
    outcome = relay.send(sent, interface)
    assert (outcome.reason, outcome.verdict) == (Reason.PASS_NOT_OURS, XDP_PASS)
    assert outcome.data == sent


@pytest.mark.parametrize("port", [5100, 5115])
def test_the_inner_range_is_ours_to_its_ends(relay: Rig, port: int) -> None:
    relay.install()
    assert relay.send(frame(ENDPOINT, (INNER, port), REPLY), INNER_SIDE).reason is Reason.RETURN


@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        pytest.param(frame(CLIENT, VIP, DTLS), INNER_SIDE, id="client_on_the_inner_side"),
        pytest.param(frame(ENDPOINT, OURS, REPLY), OUTER, id="endpoint_on_the_outer_side"),
        pytest.param(frame(ENDPOINT, OURS, REPLY, ttl=1), OUTER, id="odd"),
        pytest.param(frame(ENDPOINT, OURS, REPLY, fragment=0x2000), OUTER, id="first_fragment"),
        pytest.param(frame(ENDPOINT, OURS, REPLY, fragment=5), OUTER, id="later_fragment"),
        pytest.param(frame(CLIENT, VIP, DTLS, fragment=5), INNER_SIDE, id="fragment_to_a_vip"),
        pytest.param(frame(CLIENT, VIP, DTLS), LOOPBACK, id="interface_without_a_role"),
    ],
)
def test_packet_on_the_wrong_side_is_dropped(relay: Rig, sent: bytes, wrong: str) -> None:
    relay.install()
    outcome = relay.send(sent, wrong)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_WRONG_SIDE, XDP_DROP)


def test_interface_with_both_roles_brings_both_legs(relay: Rig) -> None:
    relay.install()
    assert relay.send(frame(CLIENT, VIP, DTLS), BOTH).reason is Reason.FORWARD
    assert relay.send(frame(ENDPOINT, OURS, REPLY), BOTH).reason is Reason.RETURN


NOP = b"\x01\x01\x01\x01"  # IP options


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"fragment": 0x2000}, id="first_fragment"),
        pytest.param({"fragment": 0x2005}, id="middle_fragment"),
        pytest.param({"fragment": 0x0005}, id="last_fragment"),
        pytest.param({"options": NOP}, id="options"),
        pytest.param({"options": NOP * 10}, id="most_options"),
        pytest.param({"ttl": 1}, id="ttl_1"),
        pytest.param({"ttl": 0}, id="ttl_0"),
        pytest.param({"udp_length": 8 + len(DTLS) - 1}, id="bytes_behind_udp"),
    ],
)
@pytest.mark.parametrize(
    ("source", "destination", "payload", "interface"),
    [
        pytest.param(CLIENT, VIP, DTLS, OUTER, id="outer"),
        pytest.param(ENDPOINT, OURS, REPLY, INNER_SIDE, id="inner"),
    ],
)
def test_odd_packet_goes_to_the_kernel_unmodified(
    relay: Rig,
    source: Address,
    destination: Address,
    payload: bytes,
    interface: str,
    changes: dict[str, int],
) -> None:
    key = relay.install()
    if "udp_length" in changes:
        changes = {"udp_length": 8 + len(payload) - 1}
    sent = frame(source, destination, payload, **changes)  # type: ignore[arg-type]
    outcome = relay.send(sent, interface)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_ODD, XDP_PASS)
    assert outcome.data == sent
    assert relay.flow(key).packets_up == relay.flow(key).packets_down == 0


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(CLIENT, VIP, DTLS)[:-1], id="ip_beyond_the_frame"),
        pytest.param(frame(CLIENT, VIP, DTLS)[:35], id="cut_in_the_udp_header"),
        pytest.param(frame(CLIENT, VIP, DTLS, ip_length=27), id="ip_ends_in_the_udp_header"),
        pytest.param(frame(CLIENT, VIP, DTLS, ip_length=0), id="ip_length_0"),
        pytest.param(frame(CLIENT, VIP, DTLS, udp_length=8 + len(DTLS) + 1), id="udp_beyond_ip"),
        pytest.param(frame(CLIENT, VIP, DTLS, udp_length=7), id="udp_below_its_header"),
        pytest.param(frame(CLIENT, VIP, DTLS, udp_length=0), id="udp_length_0"),
        pytest.param(frame(CLIENT, VIP, DTLS, fragment=5, ip_length=20), id="empty_fragment"),
        pytest.param(frame(CLIENT, VIP, DTLS, fragment=5)[:-1], id="fragment_beyond_the_frame"),
        pytest.param(
            frame(CLIENT, VIP, DTLS)[:14] + b"\x44" + frame(CLIENT, VIP, DTLS)[15:], id="ihl_4"
        ),
        pytest.param(
            frame(CLIENT, VIP, DTLS, fragment=5).replace(b"\x45", b"\x44", 1), id="fragment_ihl_4"
        ),
        pytest.param(
            frame(CLIENT, VIP, b"")[:14] + b"\x4f" + frame(CLIENT, VIP, b"")[15:],
            id="options_beyond_the_frame",
        ),
    ],
)
def test_packet_that_nobody_can_read_is_dropped(relay: Rig, sent: bytes) -> None:
    relay.install()
    outcome = relay.send(sent)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_BAD_LENGTH, XDP_DROP)
