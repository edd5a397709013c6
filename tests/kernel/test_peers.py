"""Peer relays: to one as if it was the endpoint, from one as if it was the client, and back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relayctl.datapath import xdp
from relayctl.datapath.base import PeerPlace
from relayctl.flow import CONFIRMED, TO_PEER, Flow, FlowKey, peer_place
from relayctl.peers import BACK
from relayctl.reason import Reason
from tests.kernel.conftest import in_place, own_namespace
from tests.kernel.packets import DTLS, Address, frame, request, rtp, spp_header, take_apart
from tests.kernel.rig import (
    CLIENT,
    CLIENT_V6,
    ENDPOINT,
    ENDPOINT_MACS,
    ENDPOINT_V6,
    INNER,
    INNER_SIDE,
    INNER_V6,
    OUTER,
    SPORT,
    TO_ENDPOINT,
    UNRESOLVED,
    VIP,
    Rig,
    now,
    spec,
    token,
)

PEER, OTHER, PEER_V6 = "10.2.1.1", "10.2.1.2", "fd00:3::1"  # ids 2, 3 and 4
THEIR_VIP, THEIR_VIP_V6 = ("203.0.113.20", 3478), ("2001:db8:113::20", 3478)  # ids 9 and 10
ELSEWHERE = 70  # a cluster behind peers


@pytest.fixture(scope="module")
def made(bpffs: Path, namespace: None) -> Iterator[Rig]:
    """On interfaces of its own, which have the names of the others'."""
    with own_namespace():
        node = spec(
            bpffs,
            "peers",
            peers=((2, PEER), (3, OTHER), (4, PEER_V6)),
            foreign_vips=((9, THEIR_VIP, (2,)), (10, THEIR_VIP_V6, (2, 4))),
        )
        with in_place(node) as rig:
            yield rig


@pytest.fixture
def relay(made: Rig) -> Rig:
    made.reset()
    for slot, host in ((2, PEER), (3, OTHER), (4, PEER_V6)):
        made.datapath.write_peer(slot, PeerPlace(host, TO_ENDPOINT))
        made.datapath.write_peer(BACK + slot, PeerPlace(host, TO_ENDPOINT))
    return made


def test_an_older_instance_without_the_map_is_adopted(bpffs: Path, namespace: None) -> None:
    old = spec(bpffs, "older")
    xdp.load(old)
    (old.pins / "peers").unlink()
    before = xdp.XdpDatapath.open(old.pins)
    before.write_peer(2, PeerPlace(PEER, 1))  # which does nothing
    key = FlowKey(CLIENT, 1)
    flow = Flow(ENDPOINT, 7, SPORT, born=now())
    assert before.flows.install(key, flow)
    before.close()
    assert xdp.load(replace(old, peers=((2, PEER),))).adopted
    after = xdp.XdpDatapath.open(old.pins)
    after.write_peer(2, PeerPlace(PEER, 1))
    assert after.flows.get(key) == flow
    after.close()
    xdp.unload(old.instance, str(bpffs))


def install_to_peer(relay: Rig, slot: int = 2, **changes: Any) -> FlowKey:
    return relay.install(
        endpoint=peer_place(slot, SPORT), cluster=ELSEWHERE, flags=TO_PEER, nexthop_in=0, **changes
    )


def brought(
    payload: bytes,
    *,
    peer: str = PEER,
    client: Address = CLIENT,
    vip: Address = THEIR_VIP,
    port: int = SPORT,
    sum: int | None = None,
) -> bytes:
    ours = INNER_V6 if ":" in peer else INNER
    content = spp_header(client, vip) + payload
    return frame((peer, port), (ours, SPORT), content, ttl=33, tos=0x2E, sum=sum)


@pytest.mark.parametrize(("slot", "host", "ours"), [(2, PEER, INNER), (4, PEER_V6, INNER_V6)])
def test_client_packet_goes_to_the_peer(relay: Rig, slot: int, host: str, ours: str) -> None:
    install_to_peer(relay, slot)
    outcome = relay.send(frame(CLIENT, VIP, rtp(1), ttl=33))
    assert outcome.reason is Reason.FORWARD
    sent = take_apart(outcome.data)
    assert (sent.source, sent.destination, sent.ttl) == ((ours, SPORT), (host, SPORT), 32)
    assert sent.payload == spp_header(CLIENT, VIP) + rtp(1)


def test_a_slot_that_is_pointed_elsewhere_takes_all_its_flows_along(relay: Rig) -> None:
    install_to_peer(relay)
    relay.datapath.write_peer(2, PeerPlace(OTHER, TO_ENDPOINT))
    sent = take_apart(relay.send(frame(CLIENT, VIP, DTLS)).data)
    assert sent.destination == (OTHER, SPORT)
    assert relay.send(brought(DTLS, peer=OTHER, vip=VIP), INNER_SIDE).reason is Reason.RETURN
    assert relay.send(brought(DTLS, vip=VIP), INNER_SIDE).reason is Reason.PUNT_RETURN


def test_nobody_in_the_slot_is_handed_up(relay: Rig) -> None:
    install_to_peer(relay)
    relay.datapath.write_peer(2, None)
    assert relay.send(frame(CLIENT, VIP, DTLS)).reason is Reason.PUNT_NEXTHOP
    assert relay.send(brought(DTLS, vip=VIP), INNER_SIDE).reason is Reason.PUNT_RETURN


def test_another_token_of_the_same_cluster_is_the_peers_to_judge(relay: Rig) -> None:
    key = install_to_peer(relay, token=b"before!!")
    text = token(("10.2.0.77", 5000), cluster=ELSEWHERE)
    assert relay.send(frame(CLIENT, VIP, request(text))).reason is Reason.FORWARD
    assert relay.flow(key).token == text[:8].encode()


def test_a_token_of_another_cluster_contends(relay: Rig) -> None:
    key = install_to_peer(relay, token=b"before!!")
    assert relay.send(frame(CLIENT, VIP, request(token()))).reason is Reason.PUNT_CONTENDED
    assert relay.flow(key).token == b"before!!"


def test_what_the_peer_returns_is_stripped_and_confirms(relay: Rig) -> None:
    key = install_to_peer(relay)
    outcome = relay.send(brought(rtp(5), vip=VIP), INNER_SIDE)
    assert outcome.reason is Reason.RETURN
    sent = take_apart(outcome.data)
    assert (sent.source, sent.destination, sent.payload) == (VIP, CLIENT, rtp(5))
    flow = relay.flow(key)
    assert (flow.flags, flow.packets_down) == (TO_PEER | CONFIRMED, 1)


def test_an_endpoint_is_not_the_peer_of_a_flow(relay: Rig) -> None:
    install_to_peer(relay)
    sent = frame(ENDPOINT, (INNER, SPORT), spp_header(CLIENT, VIP) + DTLS)
    assert relay.send(sent, INNER_SIDE).reason is Reason.PUNT_RETURN


@pytest.mark.parametrize(
    ("peer", "endpoint", "ours"),
    [
        pytest.param(PEER, ENDPOINT, INNER, id="4-4"),
        pytest.param(PEER, ENDPOINT_V6, INNER_V6, id="4-6"),
        pytest.param(PEER_V6, ENDPOINT, INNER, id="6-4"),
        pytest.param(PEER_V6, ENDPOINT_V6, INNER_V6, id="6-6"),
    ],
)
def test_a_peers_client_reaches_the_endpoint_and_back(
    relay: Rig, peer: str, endpoint: Address, ours: str
) -> None:
    """SPP stays, the outer headers change, and the flow notes who brought it."""
    key = relay.install(CLIENT_V6, 10, endpoint=endpoint, nexthop_out=0)
    header = spp_header(CLIENT_V6, THEIR_VIP_V6)
    up = brought(rtp(7), peer=peer, client=CLIENT_V6, vip=THEIR_VIP_V6)
    outcome = relay.send(up, INNER_SIDE)
    assert outcome.reason is Reason.FORWARD
    sent = take_apart(outcome.data)
    assert (sent.source, sent.destination) == ((ours, SPORT), endpoint)
    assert (sent.ttl, sent.tos, sent.payload) == (32, 0x2E, header + rtp(7))
    assert sent.macs == (ENDPOINT_MACS[1], ENDPOINT_MACS[0])
    flow = relay.flow(key)
    assert (flow.back, flow.ssrc, flow.packets_up, flow.bytes_up) == (
        2 if peer == PEER else 4,
        7,
        1,
        len(rtp(7)),
    )
    down = relay.send(frame(endpoint, (ours, SPORT), header + rtp(8), ttl=9), INNER_SIDE)
    assert down.reason is Reason.RETURN
    sent = take_apart(down.data)
    inner = INNER_V6 if ":" in peer else INNER
    assert (sent.source, sent.destination) == ((inner, SPORT), (peer, SPORT))
    assert (sent.ttl, sent.payload) == (8, header + rtp(8))
    assert relay.flow(key).flags == CONFIRMED


def test_absent_checksum_of_a_peer_stays_absent(relay: Rig) -> None:
    relay.install(vip=9)
    assert take_apart(relay.send(brought(DTLS, sum=0), INNER_SIDE).data).sum == 0
    relay.install(vip=9, endpoint=ENDPOINT_V6)
    assert relay.send(brought(DTLS, sum=0), INNER_SIDE).reason is Reason.PUNT_ODD


def test_the_gate_is_the_same_for_what_a_peer_brings(relay: Rig) -> None:
    assert relay.send(brought(request(token())), INNER_SIDE).reason is Reason.PUNT_FIRST
    assert relay.send(brought(request("A" * 24)), INNER_SIDE).reason is not Reason.PUNT_FIRST
    assert relay.send(brought(DTLS), INNER_SIDE).reason is Reason.PUNT_ORPHAN
    assert relay.send(brought(b"\x00"), INNER_SIDE).reason is Reason.DROP_NO_FLOW
    inside = brought(DTLS, client=("10.2.0.9", 6379))
    assert relay.send(inside, INNER_SIDE).reason is Reason.DROP_BAD_SOURCE
    key = relay.install(vip=9, token=b"before!!")
    assert relay.send(brought(request(token())), INNER_SIDE).reason is Reason.FORWARD
    other = request(token(("10.2.0.3", 5000)))
    assert relay.send(brought(other), INNER_SIDE).reason is Reason.PUNT_CONTENDED
    assert now() - relay.flow(key).contended <= 1


def test_a_peer_may_speak_for_its_own_vips_only(relay: Rig) -> None:
    relay.install(vip=9)
    assert relay.send(brought(DTLS, peer=OTHER), INNER_SIDE).reason is Reason.DROP_FOREIGN_VIP
    strange = brought(DTLS, vip=("203.0.113.21", 3478))
    assert relay.send(strange, INNER_SIDE).reason is Reason.DROP_FOREIGN_VIP
    other_port = brought(DTLS, port=6000)
    assert relay.send(other_port, INNER_SIDE).reason is Reason.DROP_NOT_AN_ENDPOINT
    assert relay.send(brought(DTLS), OUTER).reason is Reason.DROP_WRONG_SIDE


def test_a_peers_packet_never_goes_to_a_peer(relay: Rig) -> None:
    key = install_to_peer(relay, vip=9)
    outcome = relay.send(brought(DTLS), INNER_SIDE)
    assert outcome.reason is Reason.DROP_PEER_LOOP
    assert relay.flow(key).packets_up == 0


@pytest.mark.parametrize("back", [0, 99])
def test_an_answer_without_a_known_way_back_is_handed_up(relay: Rig, back: int) -> None:
    relay.install(vip=9, back=back)
    sent = frame(ENDPOINT, (INNER, SPORT), spp_header(CLIENT, THEIR_VIP) + DTLS)
    assert relay.send(sent, INNER_SIDE).reason is Reason.PUNT_RETURN


def test_unresolved_nexthops_are_handed_up(relay: Rig) -> None:
    relay.install(vip=9, nexthop_in=UNRESOLVED, back=2)
    assert relay.send(brought(DTLS), INNER_SIDE).reason is Reason.PUNT_NEXTHOP
    relay.datapath.write_peer(BACK + 2, PeerPlace(PEER, UNRESOLVED))
    sent = frame(ENDPOINT, (INNER, SPORT), spp_header(CLIENT, THEIR_VIP) + DTLS)
    assert relay.send(sent, INNER_SIDE).reason is Reason.PUNT_NEXTHOP
