"""IPv6 before a leg is walked: what is ours, what only the kernel can do, what nobody can read."""

import pytest

from relayctl.datapath.libbpf import XDP_DROP, XDP_PASS
from relayctl.reason import Reason
from tests.kernel.packets import (
    DTLS,
    EXTENSIONS,
    Address,
    Extension,
    frame,
    spp_header,
    take_apart,
)
from tests.kernel.rig import (
    BOTH,
    CLIENT,
    CLIENT_V6,
    ENDPOINT_V6,
    INNER,
    INNER_SIDE,
    INNER_V6,
    LOOPBACK,
    NATTED_LOCAL_V6,
    OUTER,
    SPORT,
    VIP,
    VIP_V6,
    Rig,
)

OURS, OURS_V6 = (INNER, SPORT), (INNER_V6, SPORT)
REPLY = spp_header(CLIENT_V6, VIP_V6) + DTLS
OUTER_LEG = (CLIENT_V6, VIP_V6, DTLS, OUTER)
INNER_LEG = (ENDPOINT_V6, OURS_V6, REPLY, INNER_SIDE)
both_legs = pytest.mark.parametrize(
    ("source", "destination", "payload", "interface"),
    [pytest.param(*OUTER_LEG, id="outer"), pytest.param(*INNER_LEG, id="inner")],
)
TCP, ICMPV6, ESP, NO_NEXT, MOBILITY = 6, 58, 50, 59, 135


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(CLIENT_V6, ("2001:db8:113::11", 3478), DTLS), id="other_address"),
        pytest.param(frame(CLIENT_V6, ("2001:db8:114::10", 3478), DTLS), id="other_prefix"),
        pytest.param(frame(CLIENT_V6, (VIP_V6[0], 53), DTLS), id="other_port"),
        pytest.param(frame(CLIENT_V6, ("::203.0.113.10", 3478), DTLS), id="last_word_of_a_v4_vip"),
        pytest.param(frame(CLIENT_V6, ("::ffff:203.0.113.10", 3478), DTLS), id="mapped_vip"),
        pytest.param(frame(CLIENT_V6, ("::ffff:10.2.0.1", SPORT), DTLS), id="mapped_inner"),
        pytest.param(frame(ENDPOINT_V6, (INNER_V6, 5099), REPLY), id="below_the_inner_range"),
        pytest.param(frame(ENDPOINT_V6, (INNER_V6, 5116), REPLY), id="above_the_inner_range"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, protocol=TCP), id="tcp"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, protocol=ICMPV6), id="icmp"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, protocol=ESP), id="esp"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, protocol=NO_NEXT), id="no_next"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, protocol=MOBILITY), id="mobility"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS)[:53], id="cut_in_the_ip_header"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS).replace(b"\x60", b"\x40", 1), id="version_4"),
        pytest.param(frame(CLIENT, VIP, DTLS).replace(b"\x08\x00", b"\x86\xdd", 1), id="v4_as_v6"),
        pytest.param(
            frame(CLIENT_V6, VIP_V6, DTLS).replace(b"\x86\xdd", b"\x08\x00", 1), id="v6_as_v4"
        ),
    ],
)
@pytest.mark.parametrize("interface", [OUTER, INNER_SIDE])
def test_what_is_not_ours_passes_untouched(relay: Rig, sent: bytes, interface: str) -> None:
    relay.install(CLIENT_V6, 3, endpoint=ENDPOINT_V6)
    relay.datapath.beat(0)
    outcome = relay.send(sent, interface)
    assert (outcome.reason, outcome.verdict) == (Reason.PASS_NOT_OURS, XDP_PASS)
    assert outcome.data == sent


CHAINS = {name: (extension,) for name, extension in EXTENSIONS.items()} | {
    "two": (EXTENSIONS["hop_by_hop"], EXTENSIONS["destination_options"]),
    "fragment_last": (EXTENSIONS["destination_options"], EXTENSIONS["first_fragment"]),
    "all": tuple(EXTENSIONS.values()),
}
every_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)


@both_legs
@every_chain
def test_extension_headers_are_left_to_the_kernel(
    relay: Rig,
    source: Address,
    destination: Address,
    payload: bytes,
    interface: str,
    chain: tuple[Extension, ...],
) -> None:
    key = relay.install(CLIENT_V6, 3, endpoint=ENDPOINT_V6)
    sent = frame(source, destination, payload, extensions=chain)
    outcome = relay.send(sent, interface)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_ODD, XDP_PASS)
    assert outcome.data == sent
    assert relay.flow(key).packets_up == relay.flow(key).packets_down == 0
    wrong = INNER_SIDE if interface == OUTER else OUTER
    assert relay.send(sent, wrong).reason is Reason.DROP_WRONG_SIDE


@every_chain
@pytest.mark.parametrize("protocol", [TCP, ICMPV6, ESP, NO_NEXT, MOBILITY])
def test_extension_header_in_front_of_something_else_is_not_ours(
    relay: Rig, chain: tuple[Extension, ...], protocol: int
) -> None:
    sent = frame(CLIENT_V6, VIP_V6, DTLS, extensions=chain, protocol=protocol)
    wanted = Reason.PASS_NOT_OURS if len(chain) == 1 else Reason.PUNT_ODD  # one is looked behind
    assert relay.send(sent).reason is wanted


@every_chain
def test_extension_headers_to_others_are_not_ours(relay: Rig, chain: tuple[Extension, ...]) -> None:
    for to in ("2001:db8:113::11", "::ffff:203.0.113.10"):
        sent = frame(CLIENT_V6, (to, 3478), DTLS, extensions=chain)
        assert relay.send(sent).reason is Reason.PASS_NOT_OURS


def test_extension_headers_hide_the_port(relay: Rig) -> None:
    for to in (VIP_V6[0], NATTED_LOCAL_V6[0]):
        sent = frame(CLIENT_V6, (to, 53), DTLS, extensions=CHAINS["two"])
        assert relay.send(sent).reason is Reason.PUNT_ODD


@both_legs
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"ttl": 1}, id="hop_limit_1"),
        pytest.param({"ttl": 0}, id="hop_limit_0"),
        pytest.param({"sum": 0}, id="no_checksum"),
        pytest.param({"udp_length": -1}, id="bytes_behind_udp"),
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
    key = relay.install(CLIENT_V6, 3, endpoint=ENDPOINT_V6)
    if "udp_length" in changes:
        changes = {"udp_length": 8 + len(payload) - 1}
    sent = frame(source, destination, payload, **changes)  # type: ignore[arg-type]
    outcome = relay.send(sent, interface)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_ODD, XDP_PASS)
    assert outcome.data == sent
    assert relay.flow(key).packets_up == relay.flow(key).packets_down == 0


HOP_BY_HOP = (EXTENSIONS["hop_by_hop"],)
SIZE = 8 + len(DTLS)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS)[:-1], id="ip_beyond_the_frame"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS)[:58], id="cut_in_the_udp_header"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS)[:54], id="cut_behind_the_ip_header"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, ip_length=7), id="ip_ends_in_the_udp_header"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, ip_length=0), id="jumbogram"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, ip_length=65535), id="largest_length"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, ip_length=65500), id="length_that_wraps"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, udp_length=SIZE + 1), id="udp_beyond_ip"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, udp_length=65535), id="largest_udp_length"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, udp_length=7), id="udp_below_its_header"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS, udp_length=0), id="udp_length_0"),
        pytest.param(
            frame(CLIENT_V6, VIP_V6, DTLS, extensions=HOP_BY_HOP)[:-1], id="extended_and_cut"
        ),
        pytest.param(
            frame(CLIENT_V6, VIP_V6, DTLS, extensions=HOP_BY_HOP)[:54], id="cut_behind_the_header"
        ),
        pytest.param(
            frame(CLIENT_V6, VIP_V6, DTLS, extensions=HOP_BY_HOP, ip_length=0), id="extended_empty"
        ),
    ],
)
def test_packet_that_nobody_can_read_is_dropped(relay: Rig, sent: bytes) -> None:
    relay.install(CLIENT_V6, 3, endpoint=ENDPOINT_V6)
    outcome = relay.send(sent)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_BAD_LENGTH, XDP_DROP)


def test_ethernet_padding_is_no_payload(relay: Rig) -> None:
    key = relay.install(CLIENT_V6, 3, endpoint=ENDPOINT_V6)
    outcome = relay.send(frame(CLIENT_V6, VIP_V6, b"\x80", padding=bytes(range(20, 37))))
    assert outcome.reason is Reason.FORWARD
    assert take_apart(outcome.data).payload == spp_header(CLIENT_V6, VIP_V6) + b"\x80"
    assert outcome.data.endswith(b"\x80" + bytes(range(20, 37)))
    assert relay.flow(key).bytes_up == 1


@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS), INNER_SIDE, id="client_on_the_inner_side"),
        pytest.param(frame(ENDPOINT_V6, OURS_V6, REPLY), OUTER, id="endpoint_on_the_outer_side"),
        pytest.param(frame(CLIENT_V6, VIP_V6, DTLS), LOOPBACK, id="interface_without_a_role"),
        pytest.param(frame(ENDPOINT_V6, OURS_V6, REPLY)[:-1], OUTER, id="unreadable"),
    ],
)
def test_packet_on_the_wrong_side_is_dropped(relay: Rig, sent: bytes, wrong: str) -> None:
    relay.install(CLIENT_V6, 3, endpoint=ENDPOINT_V6)
    outcome = relay.send(sent, wrong)
    assert (outcome.reason, outcome.verdict) == (Reason.DROP_WRONG_SIDE, XDP_DROP)


def test_interface_with_both_roles_brings_both_legs(relay: Rig) -> None:
    relay.install(CLIENT_V6, 3, endpoint=ENDPOINT_V6)
    assert relay.send(frame(CLIENT_V6, VIP_V6, DTLS), BOTH).reason is Reason.FORWARD
    assert relay.send(frame(ENDPOINT_V6, OURS_V6, REPLY), BOTH).reason is Reason.RETURN
