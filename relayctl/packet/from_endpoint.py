"""Decisions about what endpoints send: to their clients, for flows that we lost, and for clients
whose flow is another endpoint's.

Pure. A peer relay is an endpoint for the clients of our VIPs, and brings the clients of its own.
"""

from relayctl.flow import TO_PEER, Flow, FlowKey, peer_place, units
from relayctl.packet.actions import (
    Action,
    Count,
    FromClient,
    FromEndpoint,
    Install,
    Send,
    SendInner,
    SendOuter,
    View,
)
from relayctl.packet.from_client import judge_client
from relayctl.packet.routing import Drop, nexthops, reach, rerouted
from relayctl.peers import BACK
from relayctl.reason import Reason
from relayctl.wire import spp, stun
from relayctl.wire.packet_class import BINDING_REQUEST, PacketClass, classify
from relayctl.wire.spp import SppError


def judge_endpoint(event: FromEndpoint, view: View, now: int) -> list[Action]:
    """Raises `Drop`."""
    try:
        header = spp.decode(event.header)
    except SppError:
        raise Drop(Reason.SLOW_NOT_SPP) from None
    if not event.payload or not header.is_of_one_family:
        raise Drop(Reason.SLOW_NOT_SPP)
    peers = view.peers
    peer, ours = peers.at(event.sender[0]), view.vip(header.proxy)
    vip = peers.vip(header.proxy) if ours is None else ours
    if vip is None or (peer and ours is None and not peers.serves(peer, vip)):
        raise Drop(Reason.SLOW_FOREIGN_VIP)
    key = FlowKey(header.client, vip)
    if peer and ours is None:
        brought = FromClient(event.payload, key, event.received_at, peer, event.sport)
        return judge_client(brought, view, now)
    cluster = peers.cluster_of(peer) if peer else view.owner(event.sender)
    if cluster is None:
        raise Drop(Reason.SLOW_NOT_ALLOWED)
    flow = view.flow(key)
    if flow is None:
        return _recover(event, key, cluster, view, now)
    if not _is_of(flow, event, view):
        return _of_contender(event, key, flow, view, now)
    return [
        *rerouted(key, flow, view),
        _to_client(key, flow.sport, flow.back, event.payload, view),
        Count(Reason.SLOW_RETURN),
    ]


def _is_of(flow: Flow, event: FromEndpoint, view: View) -> bool:
    """Whether the flow's endpoint sent it: by way of any peer that reaches it."""
    if not flow.slot:
        return flow.endpoint == event.sender
    return view.peers.at(event.sender[0]) in view.peers.via.get(flow.cluster, ())


def _to_client(key: FlowKey, sport: int, back: int, payload: bytes, view: View) -> Send:
    """Straight to the client, or back to the relay whose VIP it knows, with SPP kept."""
    peers = view.peers
    if not peers.is_theirs(key.vip):
        return SendOuter(key, payload)
    host = peers.place(BACK + (back or peers.holder(key.packed_client, key.vip)))
    if host is None:
        raise Drop(Reason.SLOW_NO_PEER)
    return SendInner((host, sport), sport, key, payload)


def _of_contender(
    event: FromEndpoint, key: FlowKey, flow: Flow, view: View, now: int
) -> list[Action]:
    """Another endpoint than the flow's may find out whether the client is there, nothing else."""
    payload = event.payload
    if classify(payload) is not PacketClass.STUN:
        raise Drop(Reason.SLOW_NOT_OWNER)
    wanted = view.pending.wanted_by(key, now)
    if wanted is None or reach(wanted, view) != event.sender:
        raise Drop(Reason.SLOW_NOT_OWNER)
    if stun.is_whole(payload, BINDING_REQUEST):
        view.pending.note(key, stun.transaction_of(payload))
    sent = _to_client(key, flow.sport, flow.back, payload, view)
    return [sent, Count(Reason.SLOW_TAKEOVER_CHECK)]


def _recover(event: FromEndpoint, key: FlowKey, cluster: int, view: View, now: int) -> list[Action]:
    """A return packet of a flow that we lost makes it again, as `new` and without a token."""
    if view.tombstones.get(key, 0) > now:
        raise Drop(Reason.SLOW_TOMBSTONE)
    if view.refuses(key.packed_client):
        raise Drop(Reason.SLOW_BAD_SOURCE)
    stamp = units(now)
    by_peer, theirs = view.peers.at(event.sender[0]), view.peers.is_theirs(key.vip)
    endpoint = peer_place(by_peer, event.sport) if by_peer else event.sender
    into, out = nexthops(endpoint, key, view)
    flow = Flow(
        endpoint=endpoint,
        cluster=cluster,
        sport=event.sport,
        nexthop_in=into,
        nexthop_out=out,
        back=view.peers.holder(key.packed_client, key.vip) if theirs else 0,
        flags=TO_PEER if by_peer else 0,
        seen_down=stamp,
        born=stamp,
        packets_down=1,
        bytes_down=len(event.payload),
    )
    return [
        Install(key, flow),
        _to_client(key, flow.sport, flow.back, event.payload, view),
        Count(Reason.SLOW_RECOVERED),
    ]
