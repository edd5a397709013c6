"""Decisions about what endpoints send: to their clients, for flows that we lost, and for clients
whose flow is another endpoint's.

Pure.
"""

from relayctl.flow import Flow, FlowKey, units
from relayctl.packet.actions import Action, Count, FromEndpoint, Install, SendOuter, View
from relayctl.packet.routing import Drop, nexthop, rerouted
from relayctl.reason import Reason
from relayctl.wire import spp, stun
from relayctl.wire.address import compact
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
    vip = view.vip(header.proxy)
    if vip is None:
        raise Drop(Reason.SLOW_FOREIGN_VIP)
    cluster = view.owner(event.sender)
    if cluster is None:
        raise Drop(Reason.SLOW_NOT_ALLOWED)
    key = FlowKey(header.client, vip)
    flow = view.flow(key)
    if flow is None:
        return _recover(event, key, cluster, view, now)
    if flow.endpoint != event.sender:
        return _of_contender(event, key, view, now)
    return [
        *rerouted(key, flow, view),
        SendOuter(key, event.payload),
        Count(Reason.SLOW_RETURN),
    ]


def _of_contender(event: FromEndpoint, key: FlowKey, view: View, now: int) -> list[Action]:
    """Another endpoint than the flow's may find out whether the client is there, nothing else."""
    payload = event.payload
    if classify(payload) is not PacketClass.STUN:
        raise Drop(Reason.SLOW_NOT_OWNER)
    if not view.pending.is_wanted_by(key, event.sender, now):
        raise Drop(Reason.SLOW_NOT_OWNER)
    if stun.is_whole(payload, BINDING_REQUEST):
        view.pending.note(key, stun.transaction_of(payload))
    return [SendOuter(key, payload), Count(Reason.SLOW_TAKEOVER_CHECK)]


def _recover(event: FromEndpoint, key: FlowKey, cluster: int, view: View, now: int) -> list[Action]:
    """A return packet of a flow that we lost makes it again, as `new` and without a token."""
    if view.tombstones.get(key, 0) > now:
        raise Drop(Reason.SLOW_TOMBSTONE)
    if view.refuses(key.packed_client):
        raise Drop(Reason.SLOW_BAD_SOURCE)
    stamp = units(now)
    flow = Flow(
        endpoint=event.sender,
        cluster=cluster,
        sport=event.sport,
        nexthop_in=nexthop(compact(event.sender[0]), view),
        nexthop_out=nexthop(key.host, view),
        seen_down=stamp,
        born=stamp,
        packets_down=1,
        bytes_down=len(event.payload),
    )
    return [
        Install(key, flow),
        SendOuter(key, event.payload),
        Count(Reason.SLOW_RECOVERED),
    ]
