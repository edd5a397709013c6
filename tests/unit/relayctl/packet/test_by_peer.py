"""Two relays, decision by decision: the ingress has the VIP, its peer the transceivers."""

import pytest

from relayctl.datapath.base import PeerPlace
from relayctl.datapath.socket import SocketDatapath
from relayctl.flow import CONFIRMED, TO_PEER, Flow, FlowKey, peer_place
from relayctl.packet.actions import Count, FromClient, FromEndpoint, Install, SendInner, SendOuter
from relayctl.packet.decide import decide
from relayctl.packet.view import address_policy
from relayctl.peers import BACK, Peer, Peers
from relayctl.reason import Reason
from relayctl.wire.address import Address
from tests.unit.relayctl.fake_view import FakeView
from tests.unit.relayctl.packet.events import NOW, OUR_KEY, SPORT, carry_out, from_client, reason_of
from tests.unit.relayctl.packets import (
    CLIENT,
    DTLS,
    ENDPOINT,
    OTHER_ENDPOINT,
    VIP,
    VIP_6,
    binding_request,
    binding_response,
    config,
    rtp,
    spp_header,
    token,
)

FIRST, SECOND, INGRESS = "10.2.1.2", "10.2.1.3", "10.2.1.9"
THEIR_VIP = ("203.0.113.20", 3478)  # of the ingress, as the peer knows it: id 9
THEIR_KEY = FlowKey(CLIENT, 9)
REQUEST = binding_request(token())


@pytest.fixture
def ingress() -> FakeView:
    """Cluster 7 is behind peers 2 and 3."""
    return FakeView(peers=Peers([Peer(2, FIRST, {}), Peer(3, SECOND, {})], {7: (2, 3)}))


@pytest.fixture
def peer() -> FakeView:
    """Cluster 7 is its own; relays 4 and 5 bring the clients of VIP 9."""
    vips = {THEIR_VIP: 9}
    return FakeView(peers=Peers([Peer(4, INGRESS, vips), Peer(5, "10.2.1.8", vips)]))


def brought(payload: bytes, vip: Address = THEIR_VIP, host: str = INGRESS) -> FromEndpoint:
    return FromEndpoint(spp_header(CLIENT, vip), payload, (host, SPORT), SPORT, NOW)


def answered(payload: bytes, sender: Address = ENDPOINT) -> FromEndpoint:
    return FromEndpoint(spp_header(CLIENT, THEIR_VIP), payload, sender, SPORT, NOW)


def test_first_packet_goes_to_a_peer(ingress: FakeView) -> None:
    installed, sent, count = decide(from_client(REQUEST), ingress, NOW)
    assert isinstance(installed, Install)
    flow = installed.flow
    assert flow.slot == ingress.peers.choose(7, OUR_KEY.packed_client, 1)
    assert (flow.flags, flow.cluster, flow.nexthop_in, flow.nexthop_out) == (TO_PEER, 7, 0, 2)
    host = {2: FIRST, 3: SECOND}[flow.slot]
    assert sent == SendInner((host, SPORT), SPORT, OUR_KEY, REQUEST)
    assert count == Count(Reason.SLOW_INSTALLED)


def test_a_peer_that_died_is_replaced_without_touching_the_flow(ingress: FakeView) -> None:
    carry_out(from_client(REQUEST), ingress)
    flow = ingress.flows[OUR_KEY]
    other = 5 - flow.slot
    ingress.peers.take([other])
    sent, _ = decide(from_client(DTLS), ingress, NOW)
    host = {2: FIRST, 3: SECOND}[other]
    assert sent == SendInner((host, SPORT), SPORT, OUR_KEY, DTLS)
    for sender in (FIRST, SECOND):  # what is under way from the one before passes too
        back = decide(brought(DTLS, VIP, sender), ingress, NOW)
        assert back == [SendOuter(OUR_KEY, DTLS), Count(Reason.SLOW_RETURN)]
    ingress.peers.take([])
    assert reason_of(from_client(DTLS), ingress) is Reason.SLOW_NO_PEER
    ingress.flows.clear()
    assert reason_of(from_client(REQUEST), ingress) is Reason.SLOW_NO_PEER


def test_another_call_of_the_cluster_follows_the_flow(ingress: FakeView) -> None:
    carry_out(from_client(REQUEST), ingress)
    other = from_client(binding_request(token(OTHER_ENDPOINT)))
    assert decide(other, ingress, NOW)[-1] == Count(Reason.SLOW_FORWARD)


def test_a_return_packet_of_a_lost_flow_makes_it_again_at_the_ingress(ingress: FakeView) -> None:
    installed, sent, _ = decide(brought(DTLS, VIP, SECOND), ingress, NOW)
    assert isinstance(installed, Install)
    flow = installed.flow
    assert (flow.endpoint, flow.flags, flow.cluster) == (peer_place(3, SPORT), TO_PEER, 7)
    assert sent == SendOuter(OUR_KEY, DTLS)


def test_the_peer_opens_the_flow_with_the_way_back(peer: FakeView) -> None:
    installed, sent, count = decide(brought(REQUEST), peer, NOW)
    assert isinstance(installed, Install)
    flow = installed.flow
    assert (installed.key, flow.endpoint, flow.back) == (THEIR_KEY, ENDPOINT, 4)
    assert (flow.sport, flow.nexthop_in, flow.nexthop_out) == (SPORT, 1, 0)
    assert sent == SendInner(ENDPOINT, SPORT, THEIR_KEY, REQUEST)
    assert count == Count(Reason.SLOW_INSTALLED)


def test_the_answer_goes_back_with_spp(peer: FakeView) -> None:
    carry_out(brought(REQUEST), peer)
    answer = decide(answered(DTLS), peer, NOW)
    sent = SendInner((INGRESS, SPORT), SPORT, THEIR_KEY, DTLS)
    assert answer == [sent, Count(Reason.SLOW_RETURN)]
    peer.peers.take([5])  # another relay of the same VIP
    assert decide(answered(DTLS), peer, NOW)[0] == sent._replace(endpoint=("10.2.1.8", SPORT))
    peer.peers.take([])
    assert reason_of(answered(DTLS), peer) is Reason.SLOW_NO_PEER


def test_a_lost_flow_is_made_again_at_the_peer(peer: FakeView) -> None:
    installed, sent, _ = decide(answered(DTLS), peer, NOW)
    assert isinstance(installed, Install)
    back = peer.peers.holder(THEIR_KEY.packed_client, 9)
    assert (installed.flow.back, installed.flow.flags) == (back, 0)
    assert isinstance(sent, SendInner)
    assert sent.endpoint == (peer.peers.place(BACK + back), SPORT)


def test_two_relays_that_take_each_other_for_the_way_do_not_loop(peer: FakeView) -> None:
    peer.peers.via[7] = (4,)
    assert reason_of(brought(REQUEST), peer) is Reason.SLOW_PEER_LOOP
    assert not peer.flows


def test_a_hint_never_leads_to_a_peer_again(peer: FakeView) -> None:
    moved = FlowKey(("192.0.2.1", 7), 1)
    peer.flows[moved] = Flow(peer_place(4, SPORT), 7, SPORT, flags=TO_PEER, ssrc=9)
    peer.hints.update({9: moved}, ())
    assert reason_of(brought(rtp(9)), peer) is Reason.SLOW_PEER_LOOP


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        pytest.param(brought(REQUEST, ("203.0.113.9", 1)), Reason.SLOW_FOREIGN_VIP, id="vip"),
        pytest.param(brought(REQUEST, VIP_6), Reason.SLOW_NOT_SPP, id="families"),
        pytest.param(brought(DTLS, VIP), Reason.SLOW_NOT_ALLOWED, id="reaches_nothing"),
        pytest.param(brought(DTLS), Reason.SLOW_ORPHAN, id="orphan"),
        pytest.param(answered(DTLS, ("10.9.0.1", 9)), Reason.SLOW_NOT_ALLOWED, id="stranger"),
    ],
)
def test_refused_at_the_peer(peer: FakeView, event: FromEndpoint, reason: Reason) -> None:
    assert reason_of(event, peer) is reason


def test_takeover_by_a_call_of_another_cluster(ingress: FakeView) -> None:
    """The flow is a direct one; a call behind a peer proves that the client wants it."""
    ingress.flows[OUR_KEY] = Flow(("10.2.0.5", 5000), 1, SPORT, flags=CONFIRMED, nexthop_in=1)
    assert carry_out(from_client(REQUEST), ingress) is Reason.SLOW_TAKEOVER
    slot = ingress.peers.choose(7, OUR_KEY.packed_client, 1)
    host = {2: FIRST, 3: SECOND}[slot]
    check = brought(binding_request(token()), VIP, host)
    assert carry_out(check, ingress) is Reason.SLOW_TAKEOVER_CHECK
    proof = from_client(binding_response(check.payload[8:20]))
    assert carry_out(proof, ingress) is Reason.SLOW_REPOINTED
    assert ingress.flows[OUR_KEY].slot == slot


def test_takeover_at_the_peer(peer: FakeView) -> None:
    carry_out(brought(REQUEST), peer)
    wants = binding_request(token(OTHER_ENDPOINT))
    assert carry_out(brought(wants), peer) is Reason.SLOW_TAKEOVER
    check = answered(binding_request(token()), OTHER_ENDPOINT)
    sent, count = decide(check, peer, NOW)
    assert isinstance(sent, SendInner)
    assert (sent.endpoint, count) == ((INGRESS, SPORT), Count(Reason.SLOW_TAKEOVER_CHECK))
    proof = brought(binding_response(check.payload[8:20]))
    assert carry_out(proof, peer) is Reason.SLOW_REPOINTED
    moved = peer.flows[THEIR_KEY]
    assert (moved.endpoint, moved.back, moved.nexthop_out) == (OTHER_ENDPOINT, 4, 0)


@pytest.fixture
def datapath() -> SocketDatapath:
    """Relay 4 brings clients of VIP 9; flows of cluster 8 go to it."""
    relays = Peers([Peer(4, INGRESS, {THEIR_VIP: 9}), Peer(5, FIRST, {})])
    made = SocketDatapath(8, {VIP: 1}, address_policy(config()), peers=relays)
    made.write_peer(4, PeerPlace(INGRESS, 0))
    made.write_peer(BACK + 4, PeerPlace(INGRESS, 0))
    made.beat(20)
    return made


def test_the_socket_datapath_carries_both_roles(datapath: SocketDatapath) -> None:
    flows = datapath.flows
    flows.install(OUR_KEY, Flow(peer_place(4, SPORT), 8, SPORT, flags=TO_PEER))
    sent = SendInner((INGRESS, SPORT), SPORT, OUR_KEY, DTLS)
    assert datapath.forward(FromClient(DTLS, OUR_KEY, 0), 20) == (Reason.FORWARD, sent)
    back = datapath.forward(brought(DTLS, VIP), 20)
    assert back == (Reason.RETURN, SendOuter(OUR_KEY, DTLS))
    flows.install(THEIR_KEY, Flow(ENDPOINT, 7, SPORT))
    assert datapath.forward(answered(DTLS), 20) == (Reason.PUNT_RETURN, None)
    sent = SendInner(ENDPOINT, SPORT, THEIR_KEY, DTLS)
    assert datapath.forward(brought(DTLS), 20) == (Reason.FORWARD, sent)
    flow = flows.get(THEIR_KEY)
    assert flow
    assert (flow.back, flow.packets_up) == (4, 1)
    sent = SendInner((INGRESS, SPORT), SPORT, THEIR_KEY, DTLS)
    assert datapath.forward(answered(DTLS), 20) == (Reason.RETURN, sent)


def test_the_socket_datapath_refuses_as_the_program_does(datapath: SocketDatapath) -> None:
    flows = datapath.flows
    flows.install(THEIR_KEY, Flow(peer_place(4, SPORT), 8, SPORT, flags=TO_PEER))
    assert datapath.forward(brought(DTLS), 20) == (Reason.DROP_PEER_LOOP, None)
    assert datapath.forward(brought(DTLS, host=FIRST), 20) == (Reason.DROP_FOREIGN_VIP, None)
    port = brought(DTLS)._replace(sender=(INGRESS, 6000))
    assert datapath.forward(port, 20) == (Reason.DROP_NOT_AN_ENDPOINT, None)
    flows.install(OUR_KEY, Flow(peer_place(4, SPORT), 8, SPORT, flags=TO_PEER))
    datapath.write_peer(4, None)
    assert datapath.forward(FromClient(DTLS, OUR_KEY, 0), 20) == (Reason.PUNT_NEXTHOP, None)
