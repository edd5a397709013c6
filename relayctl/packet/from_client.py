"""Decisions about what clients send: first packets, orphans, and who takes a live flow over.

Pure. A Binding request opens a flow by its route token alone. It never moves a live one: see
`takeover`.
"""

from relayctl.flow import TO_PEER, Flow, peer_place, slot_of, units
from relayctl.packet.actions import (
    Action,
    Count,
    FromClient,
    Held,
    Install,
    Send,
    SendInner,
    SendTransparent,
    View,
)
from relayctl.packet.routing import (
    TOKEN_PREFIX,
    Drop,
    install,
    nexthops,
    open_token,
    reach,
    rerouted,
    sport_of,
)
from relayctl.packet.takeover import Target
from relayctl.reason import Reason
from relayctl.wire import stun
from relayctl.wire.address import Address, is_v6
from relayctl.wire.packet_class import (
    BINDING_REQUEST,
    BINDING_SUCCESS,
    PacketClass,
    classify,
    ssrc_of,
    stun_type,
)


def judge_client(event: FromClient, view: View, now: int) -> list[Action]:
    """Raises `Drop`."""
    flow = view.flow(event.key)
    if flow is not None:
        return _of_flow(event, flow, view, now)
    if view.refuses(event.key.packed_client):
        raise Drop(Reason.SLOW_BAD_SOURCE)
    if stun.is_whole(event.payload, BINDING_REQUEST):
        return _first_packet(event, view, now)
    match classify(event.payload):
        case PacketClass.STUN if stun_type(event.payload) == BINDING_REQUEST:
            raise Drop(Reason.SLOW_MALFORMED)
        case PacketClass.RTP:
            return _by_hint(event, view, now)
        case PacketClass.DTLS:
            return _look_up(event, 0, view, now)
    raise Drop(Reason.SLOW_NO_FLOW)


def _of_flow(event: FromClient, flow: Flow, view: View, now: int) -> list[Action]:
    key, payload = event.key, event.payload
    if stun.is_whole(payload, BINDING_REQUEST):
        token = _token(payload)
        if token[:TOKEN_PREFIX] != flow.token:
            target = open_token(token, event, view)
            if not _is_same(flow, target):
                return _contend(event, flow, target, view, now)
    elif stun.is_whole(payload, BINDING_SUCCESS):
        proven = view.pending.proven(key, stun.transaction_of(payload), now)
        if proven is not None:
            return _repoint(event, flow, proven, view, now)
    if flow.slot and reach(flow.endpoint, view) is None:
        return _by_another_peer(event, flow, view)
    return [
        *rerouted(key, flow, view),
        _send(event, flow.endpoint, flow.sport, view),
        Count(Reason.SLOW_FORWARD),
    ]


def _first_packet(event: FromClient, view: View, now: int) -> list[Action]:
    target = open_token(_token(event.payload), event, view)
    if view.transparent and is_v6(target.endpoint[0]) != event.key.is_v6:
        raise Drop(Reason.SLOW_NO_ROUTE)  # there is no header that could carry the other family
    flow = _flow(target, event, sport_of(event, view), view, now, len(event.payload))
    return [
        *install(event.key, flow, view),
        _send(event, flow.endpoint, flow.sport, view),
        Count(Reason.SLOW_INSTALLED),
    ]


def _by_hint(event: FromClient, view: View, now: int) -> list[Action]:
    """RTP from an unknown address: its SSRC may say which call moved. Nothing is trusted: the
    endpoint authenticates the packet, and a wrong guess costs one datagram."""
    ssrc = ssrc_of(event.payload)
    if ssrc is None:
        return _look_up(event, 0, view, now)
    moved = view.hints.find(ssrc)
    flow = view.flow(moved) if moved else None
    if flow is None or flow.ssrc != ssrc:
        return _look_up(event, ssrc, view, now)
    if not view.hints.take(ssrc, now):
        raise Drop(Reason.SLOW_HINT_BUDGET)
    return [_send(event, flow.endpoint, sport_of(event, view), view), Count(Reason.SLOW_HINT)]


def _look_up(event: FromClient, ssrc: int, view: View, now: int) -> list[Action]:
    """Another relay may know the client, or its SSRC: Redis tells, where there is one."""
    if view.lookups is None or event.back:
        raise Drop(Reason.SLOW_ORPHAN)
    endpoint = view.lookups.hinted(event.key.vip, ssrc, now) if ssrc else None
    if endpoint is not None:
        if not view.hints.take(ssrc, now):
            raise Drop(Reason.SLOW_HINT_BUDGET)
        return [
            _send(event, endpoint, sport_of(event, view), view),
            Count(Reason.SLOW_CACHED_HINT),
        ]
    refusal = view.lookups.hold(event, ssrc, now)
    if refusal is not None:
        raise Drop(refusal)
    return [Held()]


def _contend(event: FromClient, flow: Flow, target: Target, view: View, now: int) -> list[Action]:
    """Somebody with another endpoint's token sends in the name of the flow's client. That endpoint
    gets the request, and may check who it is; the flow stays where it is."""
    if view.transparent:  # its checks would not pass here: the flow has to end first
        raise Drop(Reason.SLOW_NOT_OWNER)
    view.pending.contend(event.key, target, now)
    return [_send(event, target.endpoint, flow.sport, view), Count(Reason.SLOW_TAKEOVER)]


def _repoint(event: FromClient, flow: Flow, target: Target, view: View, now: int) -> list[Action]:
    """The client answered the other endpoint's check: from here on the flow is that one's."""
    moved = _flow(target, event, flow.sport, view, now)
    actions = install(event.key, moved, view)
    view.pending.end(event.key)
    sent = _send(event, moved.endpoint, moved.sport, view)
    return [*actions, sent, Count(Reason.SLOW_REPOINTED)]


def _is_same(flow: Flow, target: Target) -> bool:
    """Whether a token leads where its client's flow goes; of a cluster behind a peer, that peer
    knows the endpoint."""
    if flow.slot:
        return slot_of(target.endpoint) > 0 and flow.cluster == target.cluster
    return flow.endpoint == target.endpoint


def _by_another_peer(event: FromClient, flow: Flow, view: View) -> list[Action]:
    """Nobody stands in for the flow's peer: the cluster may have another way."""
    key = event.key
    slot = view.peers.choose(flow.cluster, key.packed_client, key.vip)
    if not slot:
        raise Drop(Reason.SLOW_NO_PEER)
    moved = flow._replace(endpoint=peer_place(slot, flow.sport))
    sent = _send(event, moved.endpoint, moved.sport, view)
    return [Install(key, moved), sent, Count(Reason.SLOW_FORWARD)]


def _flow(
    target: Target,
    event: FromClient,
    sport: int,
    view: View,
    now: int,
    counted: int | None = None,
) -> Flow:
    """A `new` flow; `counted` is the size of a first packet that counts."""
    stamp = units(now)
    into, out = nexthops(target.endpoint, event.key, view)
    return Flow(
        endpoint=target.endpoint,
        cluster=target.cluster,
        sport=sport,
        token=target.token,
        nexthop_in=into,
        nexthop_out=out,
        back=event.back,
        flags=TO_PEER if slot_of(target.endpoint) else 0,
        seen_up=stamp,
        born=stamp,
        packets_up=int(counted is not None),
        bytes_up=counted or 0,
    )


def _token(request: bytes) -> bytes:
    token = stun.token_of(request)
    if token is None:
        raise Drop(Reason.SLOW_BAD_USERNAME)
    return token


def _send(event: FromClient, endpoint: Address, sport: int, view: View) -> Send:
    if view.transparent:
        return SendTransparent(endpoint, event.key, event.payload)
    if event.back and slot_of(endpoint):
        raise Drop(Reason.SLOW_PEER_LOOP)
    place = reach(endpoint, view)
    if place is None:
        raise Drop(Reason.SLOW_NO_PEER)
    return SendInner(place, sport, event.key, event.payload)
