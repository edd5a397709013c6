"""The socket datapath: plain memory, every packet forwarded by the packet process.

It needs no privileges, and it is the oracle of the XDP program: same verdicts, same reasons, same
changes of a flow. Not here: sockets (`relayctl.packet`), and what the program alone can see of a
packet or has to look up, such as fragments, interfaces and nexthops.
"""

from collections import Counter
from collections.abc import Mapping

from relayctl.address_policy import AddressPolicy
from relayctl.datapath.base import Nexthop, PeerPlace
from relayctl.datapath.budgets import Budgets, client_bucket, endpoint_bucket, token_bucket
from relayctl.datapath.memory_flows import Entry, MemoryFlows
from relayctl.flow import CONFIRMED, FlowKey
from relayctl.packet.actions import FromClient, FromEndpoint, Send, SendInner, SendOuter
from relayctl.peers import BACK, Peers
from relayctl.reason import Reason
from relayctl.wire import route_token, spp, stun
from relayctl.wire.address import Address
from relayctl.wire.packet_class import (
    BINDING_REQUEST,
    BINDING_SUCCESS,
    PacketClass,
    classify,
    ssrc_of,
)
from relayctl.wire.route_token import Key, Reject, Route, TokenError

Verdict = tuple[Reason, Send | None]
"""A reason of the program, and what to send: nothing for drops and punts."""

NOT_STUN_FROM = 20  # first byte: DTLS, TURN channels, RTP (RFC 7983 section 7)
PREFIX = 8  # characters of the token that a flow keeps
ALIVE_FOR = 2  # units a beat of the packet process counts
CONTENDED_FOR = 5  # units after a strange token in which answers are handed up
ANSWERS = 8  # of them, a unit and flow

_REJECTS = {
    Reject.MALFORMED: Reason.DROP_STUN_SHAPE,
    Reject.UNKNOWN_KEY: Reason.DROP_UNKNOWN_KEY,
    Reject.FORGED: Reason.DROP_FORGED,
}


class SocketDatapath:
    """The packet process's handle: flow table, counters, and the verdicts of the program."""

    name = "socket"

    def __init__(
        self,
        capacity: int,
        vips: Mapping[Address, int],
        policy: AddressPolicy,
        budgets: Budgets | None = None,
        *,
        peers: Peers | None = None,
        inner_ports: range = range(spp.PORT_BASE, spp.PORT_BASE + spp.PORT_COUNT),
    ) -> None:
        """`vips`: public address → id. `budgets`: by default only the shares of tokens, clients and
        endpoints, since what a whole CPU may hand up protects Python from the kernel's speed."""
        self.flows = MemoryFlows(capacity)
        self._vips = vips
        self._policy = policy
        self._peers = peers or Peers()
        self._inner_ports = inner_ports
        self._places: dict[int, str] = {}  # of peers' slots
        self._budgets = budgets or Budgets()
        self._keys: Mapping[int, Key] = {}
        self._counts: Counter[Reason] = Counter()
        self._slow: Mapping[Reason, int] = {}
        self._alive = 0

    def forward(self, event: FromClient | FromEndpoint, stamp: int) -> Verdict:
        """The program's verdict on one packet at `stamp` (units), counted."""
        if isinstance(event, FromClient):
            verdict = self._to_vip(event, stamp)
        else:
            verdict = self._inner(event, stamp)
        self._counts[verdict[0]] += 1
        return verdict

    def count(self, reason: Reason) -> None:
        """Count a verdict that was reached before `forward`, by the interface a packet took."""
        self._counts[reason] += 1

    def punt(self, reason: Reason, stamp: int, bucket: int = 0) -> Reason:
        """What becomes of a packet that is to be handed up: `reason`, or why it is not."""
        if not self._is_alive(stamp):
            return Reason.DROP_NO_DAEMON
        return self._budgets.charge(reason, stamp, bucket)

    def _is_alive(self, stamp: int) -> bool:
        return stamp - self._alive <= ALIVE_FOR

    def _to_vip(self, event: FromClient, stamp: int) -> Verdict:
        payload = event.payload
        entry = self.flows.entry(event.key)
        if entry is not None and event.back and entry.installed.slot:
            return Reason.DROP_PEER_LOOP, None
        if entry is None:
            return self._without_flow(event, stamp), None
        if stun.is_whole(payload, BINDING_REQUEST):
            refusal = self._judge_token(entry, payload, stamp)
            if refusal is not None:
                return refusal, None
        entry.seen_up = stamp
        entry.packets_up += 1
        entry.bytes_up += len(payload)
        if not entry.ssrc:
            entry.ssrc = ssrc_of(payload) or 0
        if self._may_prove(entry, payload, stamp):
            return Reason.PUNT_ANSWER, None
        if event.back:
            entry.back = event.back
        place = self._reach(entry)
        if place is None:
            return self.punt(Reason.PUNT_NEXTHOP, stamp), None
        return Reason.FORWARD, SendInner(place, entry.sport, event.key, payload)

    def _reach(self, entry: Entry) -> Address | None:
        """Where a flow's packets go; None: to a peer, and nobody is in its slot."""
        slot = entry.installed.slot
        if not slot:
            return entry.endpoint
        host = self._places.get(slot)
        return (host, entry.endpoint[1]) if host else None

    def _without_flow(self, event: FromClient, stamp: int) -> Reason:
        payload = event.payload
        if self._policy.refuses(event.key.packed_client):
            return Reason.DROP_BAD_SOURCE
        if stun.is_whole(payload, BINDING_REQUEST):
            token = stun.token_of(payload)
            opened = self._open(token)
            if isinstance(opened, Reason):
                return opened
            assert token
            return self.punt(Reason.PUNT_FIRST, stamp, token_bucket(token))
        if classify(payload) in (PacketClass.DTLS, PacketClass.RTP):
            return self.punt(Reason.PUNT_ORPHAN, stamp, client_bucket(event.key.host))
        return Reason.DROP_NO_FLOW

    def _judge_token(self, entry: Entry, request: bytes, stamp: int) -> Reason | None:
        """Why a Binding request does not simply follow the flow of its client; None: it does."""
        token = stun.token_of(request)
        if token and token[:PREFIX] == entry.token:
            return None
        opened = self._open(token)
        if isinstance(opened, Reason):
            return opened
        assert token
        if entry.leads_to(opened):  # another call in the same process, or its ICE restart
            entry.token = token[:PREFIX]
            return None
        reason = self.punt(Reason.PUNT_CONTENDED, stamp, token_bucket(token))
        if reason is Reason.PUNT_CONTENDED:
            entry.contended = stamp
        return reason

    def _open(self, token: bytes | None) -> Route | Reason:
        """The token gate."""
        if token is None:
            return Reason.DROP_STUN_SHAPE
        try:
            return route_token.open_token(self._keys, token)
        except TokenError as error:
            return _REJECTS[error.reason]

    def _may_prove(self, entry: Entry, payload: bytes, stamp: int) -> bool:
        """Whether the packet may be the answer that gives the flow to another endpoint, and there
        were not too many such in this unit."""
        if not entry.contended or stamp - entry.contended > CONTENDED_FOR:
            return False
        if not stun.is_whole(payload, BINDING_SUCCESS) or not self._is_alive(stamp):
            return False
        unit = stamp & 0xFFFFFF
        count = entry.answers & 0xFF if entry.answers >> 8 == unit else 0
        if count >= ANSWERS:
            return False
        entry.answers = unit << 8 | count + 1
        return True

    def _inner(self, event: FromEndpoint, stamp: int) -> Verdict:
        try:
            header = spp.decode(event.header)
        except spp.SppError:
            return Reason.DROP_NOT_SPP, None
        payload = event.payload
        if not payload or not header.is_of_one_family:
            return Reason.DROP_NOT_SPP, None
        peer = self._peers.at(event.sender[0])
        if peer:
            is_known = event.sender[1] in self._inner_ports
        else:
            is_known = self._policy.is_inside(event.sender[0])
        if not is_known:
            return Reason.DROP_NOT_AN_ENDPOINT, None
        vip = self._vips.get(header.proxy)
        if vip is None:
            return self._for_peers(event, header, peer, stamp)
        key = FlowKey(header.client, vip)
        entry = self.flows.entry(key)
        if entry is None or self._reach(entry) != event.sender:
            return self.punt(Reason.PUNT_RETURN, stamp, endpoint_bucket(event.sender)), None
        _stamp_down(entry, payload, stamp)
        return Reason.RETURN, SendOuter(key, payload)

    def _for_peers(self, event: FromEndpoint, header: spp.Header, peer: int, stamp: int) -> Verdict:
        """Of a VIP that is not ours: a peer brings its client's packet, or gets the answer."""
        vip = self._peers.vip(header.proxy)
        if vip is None or (peer and not self._peers.serves(peer, vip)):
            return Reason.DROP_FOREIGN_VIP, None
        key = FlowKey(header.client, vip)
        if peer:
            brought = FromClient(event.payload, key, event.received_at, peer, event.sport)
            return self._to_vip(brought, stamp)
        entry = self.flows.entry(key)
        host = self._places.get(BACK + entry.back) if entry and entry.back else None
        if entry is None or self._reach(entry) != event.sender or host is None:
            return self.punt(Reason.PUNT_RETURN, stamp, endpoint_bucket(event.sender)), None
        _stamp_down(entry, event.payload, stamp)
        sent = SendInner((host, entry.sport), entry.sport, key, event.payload)
        return Reason.RETURN, sent

    def nexthops(self) -> Mapping[int, Nexthop]:
        return {}

    def write_nexthop(self, index: int, nexthop: Nexthop | None) -> None:
        """Nothing to write: the kernel's own routes carry what our sockets send."""

    def write_peer(self, slot: int, place: PeerPlace | None) -> None:
        if place:
            self._places[slot] = place.host
        else:
            self._places.pop(slot, None)

    def write_keys(self, keys: Mapping[int, Key]) -> None:
        self._keys = dict(keys)

    def beat(self, now: int) -> None:
        self._alive = now

    def alive(self) -> int:
        return self._alive

    def reasons(self) -> dict[Reason, int]:
        return {**self._counts, **self._slow}

    def write_slow_reasons(self, counts: Mapping[Reason, int]) -> None:
        self._slow = counts

    def close(self) -> None:
        """Nothing is held."""


def _stamp_down(entry: Entry, payload: bytes, stamp: int) -> None:
    entry.seen_down = stamp
    entry.packets_down += 1
    entry.bytes_down += len(payload)
    if payload[0] >= NOT_STUN_FROM:
        entry.flags |= CONFIRMED
