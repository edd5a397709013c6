"""Decisions about what clients send: first packets, orphans, and who takes a live flow over.

Pure. A Binding request opens a flow by its route token alone. It never moves a live one: see
`takeover`.
"""

from relayctl.flow import Flow, FlowKey, units
from relayctl.packet.actions import (
    Action,
    Count,
    FromClient,
    Send,
    SendInner,
    SendTransparent,
    View,
)
from relayctl.packet.routing import TOKEN_PREFIX, Drop, install, nexthop, open_token, rerouted
from relayctl.packet.takeover import Target
from relayctl.reason import Reason
from relayctl.wire import stun
from relayctl.wire.address import Address, compact, is_v6
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
            raise Drop(Reason.SLOW_ORPHAN)
    raise Drop(Reason.SLOW_NO_FLOW)


def _of_flow(event: FromClient, flow: Flow, view: View, now: int) -> list[Action]:
    key, payload = event.key, event.payload
    if stun.is_whole(payload, BINDING_REQUEST):
        token = _token(payload)
        if token[:TOKEN_PREFIX] != flow.token:
            target = open_token(token, view)
            if target.endpoint != flow.endpoint:
                return _contend(event, flow, target, view, now)
    elif stun.is_whole(payload, BINDING_SUCCESS):
        proven = view.pending.proven(key, stun.transaction_of(payload), now)
        if proven is not None:
            return _repoint(event, flow, proven, view, now)
    return [
        *rerouted(key, flow, view),
        _send(event, flow.endpoint, flow.sport, view),
        Count(Reason.SLOW_FORWARD),
    ]


def _first_packet(event: FromClient, view: View, now: int) -> list[Action]:
    target = open_token(_token(event.payload), view)
    if view.transparent and is_v6(target.endpoint[0]) != event.key.is_v6:
        raise Drop(Reason.SLOW_NO_ROUTE)  # there is no header that could carry the other family
    sport = view.inner_port(event.key.packed_client)
    flow = _flow(target, event.key, sport, view, now, len(event.payload))
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
        raise Drop(Reason.SLOW_ORPHAN)
    moved = view.hints.find(ssrc)
    flow = view.flow(moved) if moved else None
    if flow is None or flow.ssrc != ssrc:
        raise Drop(Reason.SLOW_ORPHAN)
    if not view.hints.take(ssrc, now):
        raise Drop(Reason.SLOW_HINT_BUDGET)
    sport = view.inner_port(event.key.packed_client)
    return [_send(event, flow.endpoint, sport, view), Count(Reason.SLOW_HINT)]


def _contend(event: FromClient, flow: Flow, target: Target, view: View, now: int) -> list[Action]:
    """Somebody with another endpoint's token sends in the name of the flow's client. That endpoint
    gets the request, and may check who it is; the flow stays where it is."""
    if view.transparent:  # its checks would not pass here: the flow has to end first
        raise Drop(Reason.SLOW_NOT_OWNER)
    view.pending.contend(event.key, target, now)
    return [_send(event, target.endpoint, flow.sport, view), Count(Reason.SLOW_TAKEOVER)]


def _repoint(event: FromClient, flow: Flow, target: Target, view: View, now: int) -> list[Action]:
    """The client answered the other endpoint's check: from here on the flow is that one's."""
    moved = _flow(target, event.key, flow.sport, view, now)
    actions = install(event.key, moved, view)
    view.pending.end(event.key)
    sent = _send(event, moved.endpoint, moved.sport, view)
    return [*actions, sent, Count(Reason.SLOW_REPOINTED)]


def _flow(
    target: Target, key: FlowKey, sport: int, view: View, now: int, counted: int | None = None
) -> Flow:
    """A `new` flow; `counted` is the size of a first packet that counts."""
    stamp = units(now)
    return Flow(
        endpoint=target.endpoint,
        cluster=target.cluster,
        sport=sport,
        token=target.token,
        nexthop_in=nexthop(compact(target.endpoint[0]), view),
        nexthop_out=nexthop(key.host, view),
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
    return SendInner(endpoint, sport, event.key, event.payload)
