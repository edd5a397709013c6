"""What decisions about both legs need: open a token, look up nexthops, write a flow.

Pure. A packet that goes nowhere raises `Drop`.
"""

from relayctl.flow import Flow, FlowKey, peer_place, slot_of
from relayctl.packet.actions import Action, Displace, FromClient, Install, View
from relayctl.packet.takeover import Target
from relayctl.packet.token_flows import displaced_by_new, has_room
from relayctl.reason import Reason
from relayctl.wire import route_token
from relayctl.wire.address import Address, compact
from relayctl.wire.cluster import Refusal, RouteError
from relayctl.wire.route_token import TokenError

TOKEN_PREFIX = 8  # characters of the token that the flow keeps

_TOKEN_REASONS = {
    route_token.Reject.MALFORMED: Reason.SLOW_BAD_USERNAME,
    route_token.Reject.UNKNOWN_KEY: Reason.SLOW_UNKNOWN_KEY,
    route_token.Reject.FORGED: Reason.SLOW_FORGED,
}
_ROUTE_REASONS = {
    Refusal.UNKNOWN_CLUSTER: Reason.SLOW_UNKNOWN_CLUSTER,
    Refusal.NOT_ALLOWED: Reason.SLOW_NOT_ALLOWED,
}


class Drop(Exception):
    """The packet goes nowhere."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason


def open_token(token: bytes, event: FromClient, view: View) -> Target:
    """Where an authentic token leads its client: to the endpoint that it names, or by way of a peer
    relay. What a peer delivered never goes to a peer again: two that take each other for the way
    would pass it to and fro for ever."""
    try:
        route = route_token.open_token(view.keys, token)
        endpoint = view.clusters.endpoint(route)
    except TokenError as error:
        raise Drop(_TOKEN_REASONS[error.reason]) from None
    except RouteError as error:
        raise Drop(_ROUTE_REASONS[error.reason]) from None
    if route.cluster in view.peers.via:
        if event.back:
            raise Drop(Reason.SLOW_PEER_LOOP)
        slot = view.peers.choose(route.cluster, event.key.packed_client, event.key.vip)
        if not slot:
            raise Drop(Reason.SLOW_NO_PEER)
        endpoint = peer_place(slot, sport_of(event, view))
        return Target(endpoint, route.cluster, token[:TOKEN_PREFIX])
    if view.owner(endpoint) is None:  # one of our own addresses
        raise Drop(Reason.SLOW_NOT_ALLOWED)
    return Target(endpoint, route.cluster, token[:TOKEN_PREFIX])


def sport_of(event: FromClient, view: View) -> int:
    """Our inner port for a client: where a peer delivered, it is the one that it chose."""
    return event.sport or view.inner_port(event.key.packed_client)


def reach(endpoint: Address, view: View) -> Address | None:
    """Where packets for a flow's endpoint go: there, or to who is in its peer's slot now."""
    slot = slot_of(endpoint)
    if not slot:
        return endpoint
    host = view.peers.place(slot)
    return (host, endpoint[1]) if host else None


def nexthops(endpoint: Address, key: FlowKey, view: View) -> tuple[int, int]:
    """Towards endpoint and client; 0 for legs on which a peer's slot has the nexthop."""
    into = 0 if slot_of(endpoint) else nexthop(compact(endpoint[0]), view)
    return into, 0 if view.peers.is_theirs(key.vip) else nexthop(key.host, view)


def nexthop(host: bytes, view: View) -> int:
    """Index of the nexthop towards a compact address; 0 where only we can forward."""
    index = view.nexthop(host)
    if index is None:
        raise Drop(Reason.SLOW_NO_ROUTE)
    return index


def install(key: FlowKey, flow: Flow, view: View) -> list[Action]:
    """Write a flow that bears a token, within what one token may have."""
    crowd = view.crowd(flow.token)
    if not crowd:
        return [Install(key, flow)]
    if not has_room(crowd):
        raise Drop(Reason.SLOW_TOKEN_FULL)
    displaced = displaced_by_new(crowd)
    return [*([Displace(displaced)] if displaced else ()), Install(key, flow)]


def rerouted(key: FlowKey, flow: Flow, view: View) -> list[Action]:
    """Make a live flow follow the route table: its packets come here when its nexthop is gone."""
    try:
        into, out = nexthops(flow.endpoint, key, view)
    except Drop:
        return []
    if (into, out) == (flow.nexthop_in, flow.nexthop_out):
        return []
    return [Install(key, flow._replace(nexthop_in=into, nexthop_out=out))]
