"""What the model adds to the socket datapath, rule by rule. The program is held against it in
`tests/kernel/test_oracle.py`; here it is held against the rules."""

from typing import Any

import pytest

from relayctl.datapath.budgets import Region
from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.reason import Reason
from relayctl.wire import spp
from tests.oracle import node
from tests.oracle.frame import Shape, build
from tests.oracle.model import Model, Outcome
from tests.oracle.node import NODES, VIPS
from tests.oracle.parse import parse
from tests.oracle.scene import NOW, Scene, Sent

CLIENT, CLIENT6 = ("192.0.2.77", 40000), ("2001:db8:c::77", 40000)
ENDPOINT, ENDPOINT6 = ("10.2.0.9", 5000), ("fd00:2::9", 5000)
NATTED = VIPS[1]
RTP = b"\x80\x6f" + bytes(20)
KEY = FlowKey(CLIENT, 2)


def flow(**changes: Any) -> Flow:
    fields: dict[str, Any] = {
        "endpoint": ENDPOINT,
        "cluster": 7,
        "sport": 5107,
        "nexthop_in": node.PLAIN,
        "nexthop_out": node.PLAIN,
        "born": NOW,
    }
    return Flow(**fields | changes)


def model(relay: str = "spp", *, spent: int = 0, heartbeat: int = 0, **changes: Any) -> Model:
    scene = Scene(
        relay,
        (),
        ((KEY, flow(**changes)),),
        heartbeat,
        {(Region.ODD, 0): spent, (Region.NEXTHOP, 0): spent},
    )
    return Model(NODES[relay], scene, NOW)


def up(shape: Shape = Shape(), carrier: str = "outer", metadata: int = 0) -> Sent:  # noqa: B008
    return Sent(carrier, build(CLIENT, NATTED.local, RTP, shape), metadata)


def down(shape: Shape = Shape(), carrier: str = "inner") -> Sent:  # noqa: B008
    header = spp.encode(spp.Header(CLIENT, NATTED.public))
    return Sent(carrier, build(ENDPOINT, ("10.2.0.1", 5107), header + RTP, shape))


def test_client_packet_leaves_for_its_endpoint() -> None:
    outcome = model().judge(up(), NOW)
    assert outcome.reason is Reason.FORWARD
    packet = parse(outcome.frame or b"")
    assert packet
    assert (packet.source, packet.destination) == ("10.2.0.1", ENDPOINT[0])
    assert packet.ports == (5107, ENDPOINT[1])
    assert packet.payload == spp.encode(spp.Header(CLIENT, NATTED.public)) + RTP


def test_endpoint_packet_leaves_for_its_client() -> None:
    outcome = model().judge(down(), NOW)
    assert outcome.reason is Reason.RETURN
    packet = parse(outcome.frame or b"")
    assert packet
    assert (packet.source, packet.ports) == (NATTED.local[0], (NATTED.local[1], CLIENT[1]))
    assert packet.payload == RTP


def test_reply_is_carried_transparently() -> None:
    relay = model("transparent")
    outcome = relay.judge(Sent("inner", build(ENDPOINT, CLIENT, RTP)), NOW)
    assert outcome.reason is Reason.RETURN
    packet = parse(outcome.frame or b"")
    assert packet
    assert (packet.source, packet.destination) == (NATTED.local[0], CLIENT[0])
    found = relay.flow(KEY)
    assert found
    assert (found.packets_down, found.seen_down, found.flags) == (1, NOW, CONFIRMED)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (up(carrier="inner"), Reason.DROP_WRONG_SIDE),
        (down(carrier="outer"), Reason.DROP_WRONG_SIDE),
        (up(Shape(tags=((0x8100, 10),))), Reason.DROP_WRONG_SIDE),
        (up(Shape(tags=((0x8100, 20),)), "inner"), Reason.FORWARD),
        (up(carrier="lo"), Reason.DROP_WRONG_SIDE),
        (up(Shape(udp_length=7)), Reason.DROP_BAD_LENGTH),
        (up(Shape(ttl=1)), Reason.PUNT_ODD),
        (up(Shape(protocol=6)), Reason.PASS_NOT_OURS),
        (up(metadata=200), Reason.DROP_HEADROOM),
    ],
)
def test_judged_before_the_flow(sent: Sent, reason: Reason) -> None:
    assert model().judge(sent, NOW).reason is reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"nexthop_in": node.UNUSED}, Reason.PUNT_NEXTHOP),
        ({"nexthop_in": node.UNRESOLVED}, Reason.PUNT_NEXTHOP),
        ({"nexthop_in": node.PORTLESS}, Reason.DROP_REDIRECT),
        ({"nexthop_in": node.UNRESOLVED, "spent": 2000}, Reason.DROP_NEXTHOP_BUDGET),
        ({"nexthop_in": node.UNRESOLVED, "heartbeat": 3}, Reason.DROP_NO_DAEMON),
        ({"nexthop_in": node.UNRESOLVED, "heartbeat": 2}, Reason.PUNT_NEXTHOP),
        ({"heartbeat": 3}, Reason.FORWARD),
    ],
)
def test_judged_behind_the_flow(changes: dict[str, Any], reason: Reason) -> None:
    assert model(**changes).judge(up(), NOW).reason is reason


def test_absent_sum_towards_ipv6_is_the_kernels() -> None:
    relay = model(endpoint=ENDPOINT6, cluster=8)
    assert relay.judge(up(Shape(sum=0)), NOW).reason is Reason.PUNT_ODD
    assert relay.judge(up(), NOW).reason is Reason.FORWARD


@pytest.mark.parametrize(("endpoint", "cluster", "header"), [(ENDPOINT, 7, 20), (ENDPOINT6, 8, 40)])
def test_mtu_counts_what_leaves(endpoint: tuple[str, int], cluster: int, header: int) -> None:
    relay = model(endpoint=endpoint, cluster=cluster, nexthop_in=node.SMALL)
    fits = bytes([0x80]) * (node.SMALL_MTU - header - 8 - spp.HEADER_SIZE)
    for payload, reason in ((fits, Reason.FORWARD), (fits + b"x", Reason.PUNT_NEXTHOP)):
        sent = Sent("outer", build(CLIENT, NATTED.local, payload))
        assert relay.judge(sent, NOW).reason is reason


def test_hidden_ports_belong_to_both_legs_of_a_shared_address() -> None:
    relay = Model(NODES["shared"], Scene("shared", ()), NOW)
    fragment = build(CLIENT, VIPS[0].local, RTP, Shape(fragment=1))
    assert relay.judge(Sent("outer", fragment), NOW).reason is Reason.DROP_WRONG_SIDE
    assert relay.judge(Sent("both", fragment), NOW) == Outcome(Reason.PUNT_ODD, fragment)


@pytest.mark.parametrize(
    ("source", "destination", "reason"),
    [
        (("10.5.0.1", 3999), CLIENT, Reason.PASS_NOT_OURS),
        (("10.5.0.1", 4000), CLIENT, Reason.DROP_REPLY_WITHOUT_FLOW),
        (("10.5.0.1", 4000), ("10.3.0.2", 9), Reason.PASS_NOT_OURS),
        (("10.5.0.4", 5000), CLIENT, Reason.PASS_NOT_OURS),
        (ENDPOINT, ("198.51.100.1", 9), Reason.DROP_REPLY_WITHOUT_FLOW),
    ],
)
def test_transparent_inner_leg(
    source: tuple[str, int], destination: tuple[str, int], reason: Reason
) -> None:
    sent = Sent("inner", build(source, destination, RTP))
    assert model("transparent").judge(sent, NOW).reason is reason
