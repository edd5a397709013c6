"""What to do with a packet that reached user space: pure, one packet in, actions out.

The flow map is asked first, always: a packet is judged by the state when it is handled, not when
it was received, so a packet that raced the install of its own flow is just sent on. Not here:
sockets, maps, clocks, and takeover (`View.pending` is its place).
"""

import dataclasses

from relayctl.flow import Flow, FlowKey, units
from relayctl.packet.actions import (
    Action,
    Count,
    Event,
    FromClient,
    FromEndpoint,
    Install,
    SendInner,
    SendOuter,
    View,
)
from relayctl.reason import Reason
from relayctl.wire import route_token, spp, stun
from relayctl.wire.address import Address
from relayctl.wire.cluster import Refusal, RouteError
from relayctl.wire.packet_class import (
    BINDING_REQUEST,
    PacketClass,
    classify,
    ssrc_of,
    stun_type,
)
from relayctl.wire.route_token import TokenError
from relayctl.wire.spp import SppError
from relayctl.wire.stun import StunError

STALE_NS = 1_000_000_000  # the sender has repeated a packet that waited longer than this
TOKEN_PREFIX = 8  # characters of the token that the flow keeps


_STUN_REASONS = {
    stun.Reject.NOT_BINDING_REQUEST: Reason.SLOW_MALFORMED,  # the magic cookie is wrong
    stun.Reject.TRUNCATED: Reason.SLOW_MALFORMED,
    stun.Reject.NO_USERNAME: Reason.SLOW_BAD_USERNAME,
    stun.Reject.BAD_USERNAME: Reason.SLOW_BAD_USERNAME,
}
_TOKEN_REASONS = {
    route_token.Reject.MALFORMED: Reason.SLOW_BAD_USERNAME,
    route_token.Reject.UNKNOWN_KEY: Reason.SLOW_UNKNOWN_KEY,
    route_token.Reject.FORGED: Reason.SLOW_FORGED,
}
_ROUTE_REASONS = {
    Refusal.UNKNOWN_CLUSTER: Reason.SLOW_UNKNOWN_CLUSTER,
    Refusal.NOT_ALLOWED: Reason.SLOW_NOT_ALLOWED,
}


class _Drop(Exception):
    def __init__(self, reason: Reason) -> None:
        self.reason = reason


def decide(event: Event, view: View, now: int) -> list[Action]:
    """What to do with one packet at `now` (CLOCK_MONOTONIC, ns). Never raises on hostile bytes."""
    if now - event.received_at > STALE_NS:
        return [Count(Reason.SLOW_STALE)]
    try:
        if isinstance(event, FromClient):
            return _from_client(event, view, now)
        return _from_endpoint(event, view, now)
    except _Drop as drop:
        return [Count(drop.reason)]


def _from_client(event: FromClient, view: View, now: int) -> list[Action]:
    key = FlowKey(event.client, event.vip)
    flow = view.flow(key)
    if flow is not None:
        return _of_flow(event, flow, view)
    if view.refuses(event.client):
        raise _Drop(Reason.SLOW_BAD_SOURCE)
    match classify(event.payload):
        case PacketClass.STUN if stun_type(event.payload) == BINDING_REQUEST:
            return _first_packet(event, key, view, now)
        case PacketClass.RTP:
            return _by_hint(event, view, now)
        case PacketClass.DTLS:
            raise _Drop(Reason.SLOW_ORPHAN)
    raise _Drop(Reason.SLOW_NO_FLOW)


def _of_flow(event: FromClient, flow: Flow, view: View) -> list[Action]:
    if stun_type(event.payload) == BINDING_REQUEST:
        token = _token(event.payload)
        if token[:TOKEN_PREFIX] != flow.token and _open(token, view)[0] != flow.endpoint:
            raise _Drop(Reason.SLOW_CONTENDED)
    return [
        *rerouted(FlowKey(event.client, event.vip), flow, view),
        SendInner(flow.endpoint, flow.sport, event.client, event.vip, event.payload),
        Count(Reason.SLOW_FORWARD),
    ]


def _first_packet(event: FromClient, key: FlowKey, view: View, now: int) -> list[Action]:
    token = _token(event.payload)
    endpoint, cluster = _open(token, view)
    stamp = units(now)
    flow = Flow(
        endpoint=endpoint,
        cluster=cluster,
        sport=view.inner_port(event.client),
        token=token[:TOKEN_PREFIX],
        nexthop_in=_nexthop(endpoint, view),
        nexthop_out=_nexthop(event.client, view),
        seen_up=stamp,
        born=stamp,
        packets_up=1,
        bytes_up=len(event.payload),
    )
    return [
        Install(key, flow),
        SendInner(endpoint, flow.sport, event.client, event.vip, event.payload),
        Count(Reason.SLOW_INSTALLED),
    ]


def _by_hint(event: FromClient, view: View, now: int) -> list[Action]:
    """RTP from an unknown address: its SSRC may say which call moved. Nothing is trusted: the
    endpoint authenticates the packet, and a wrong guess costs one datagram."""
    ssrc = ssrc_of(event.payload)
    if ssrc is None:
        raise _Drop(Reason.SLOW_ORPHAN)
    moved = view.hints.find(ssrc)
    flow = view.flow(moved) if moved else None
    if flow is None or flow.ssrc != ssrc:
        raise _Drop(Reason.SLOW_ORPHAN)
    if not view.hints.take(ssrc, now):
        raise _Drop(Reason.SLOW_HINT_BUDGET)
    sport = view.inner_port(event.client)
    return [
        SendInner(flow.endpoint, sport, event.client, event.vip, event.payload),
        Count(Reason.SLOW_HINT),
    ]


def _from_endpoint(event: FromEndpoint, view: View, now: int) -> list[Action]:
    try:
        header = spp.decode(event.header)
    except SppError:
        raise _Drop(Reason.SLOW_NOT_SPP) from None
    if not event.payload or not header.is_v4:  # the flow table holds IPv4 clients only
        raise _Drop(Reason.SLOW_NOT_SPP)
    vip = view.vip(header.proxy)
    if vip is None:
        raise _Drop(Reason.SLOW_FOREIGN_VIP)
    cluster = view.owner(event.sender)
    if cluster is None:
        raise _Drop(Reason.SLOW_NOT_ALLOWED)
    key = FlowKey(header.client, vip)
    flow = view.flow(key)
    if flow is None:
        return _recover(event, key, cluster, view, now)
    if flow.endpoint != event.sender:
        raise _Drop(Reason.SLOW_NOT_OWNER)
    return [
        *rerouted(key, flow, view),
        SendOuter(header.client, vip, event.payload),
        Count(Reason.SLOW_RETURN),
    ]


def _recover(event: FromEndpoint, key: FlowKey, cluster: int, view: View, now: int) -> list[Action]:
    """A return packet of a flow that we lost makes it again, as `new` and without a token."""
    if view.tombstones.get(key, 0) > now:
        raise _Drop(Reason.SLOW_TOMBSTONE)
    if view.refuses(key.client):
        raise _Drop(Reason.SLOW_BAD_SOURCE)
    stamp = units(now)
    flow = Flow(
        endpoint=event.sender,
        cluster=cluster,
        sport=event.sport,
        nexthop_in=_nexthop(event.sender, view),
        nexthop_out=_nexthop(key.client, view),
        seen_down=stamp,
        born=stamp,
        packets_down=1,
        bytes_down=len(event.payload),
    )
    return [
        Install(key, flow),
        SendOuter(key.client, key.vip, event.payload),
        Count(Reason.SLOW_RECOVERED),
    ]


def _token(payload: bytes) -> bytes:
    try:
        token = stun.parse_binding_request(payload).local_ufrag
    except StunError as error:
        raise _Drop(_STUN_REASONS[error.reason]) from None
    if len(token) != route_token.LENGTH:
        raise _Drop(Reason.SLOW_BAD_USERNAME)
    return token


def _open(token: bytes, view: View) -> tuple[Address, int]:
    """Endpoint and cluster id of an authentic token."""
    try:
        route = route_token.open_token(view.keys, token)
        endpoint = view.clusters.endpoint(route)
    except TokenError as error:
        raise _Drop(_TOKEN_REASONS[error.reason]) from None
    except RouteError as error:
        raise _Drop(_ROUTE_REASONS[error.reason]) from None
    if view.owner(endpoint) is None:  # one of our own addresses
        raise _Drop(Reason.SLOW_NOT_ALLOWED)
    return endpoint, route.cluster


def _nexthop(towards: Address, view: View) -> int:
    index = view.nexthop(towards[0])
    if index is None:
        raise _Drop(Reason.SLOW_NO_ROUTE)
    return index


def rerouted(key: FlowKey, flow: Flow, view: View) -> list[Action]:
    """Make a live flow follow the route table: its packets come here when its nexthop is gone."""
    into, out = view.nexthop(flow.endpoint[0]), view.nexthop(key.client[0])
    if into is None or out is None or (into, out) == (flow.nexthop_in, flow.nexthop_out):
        return []
    return [Install(key, dataclasses.replace(flow, nexthop_in=into, nexthop_out=out))]
