"""The relay's whole decision about a frame, in Python: what the XDP program has to agree with.

Pure. What a datagram means is decided by the product's own socket datapath, so that the two
datapaths are proved to be one. The model adds what only the program does: reading frames, roles of
interfaces, lengths, odd packets, nexthops, head room, the transparent mode, and bytes.
"""

from dataclasses import dataclass
from typing import NamedTuple

from relayctl.datapath.base import Nexthop
from relayctl.datapath.budgets import KERNEL, Budgets
from relayctl.datapath.memory_flows import Entry
from relayctl.datapath.socket import NOT_STUN_FROM, SocketDatapath
from relayctl.datapath.spec import Role, Vip
from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.packet.actions import FromClient, FromEndpoint, SendInner, SendOuter
from relayctl.peers import BACK
from relayctl.reason import Reason
from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.oracle import node as world
from tests.oracle.node import LINKS, Node
from tests.oracle.parse import Packet, parse
from tests.oracle.rewrite import ip_length, readdressed, with_headers
from tests.oracle.scene import NOW, Counter, Scene, Sent, moved

HEAD_ROOM = 256 - 40  # bytes in front of a frame, without the kernel's own note there

_OUTER, _INNER = Role.OUTER, Role.INNER


class Outcome(NamedTuple):
    """What becomes of a frame. `frame` is None where it goes nowhere, changed or not."""

    reason: Reason
    frame: bytes | None


@dataclass(frozen=True, slots=True)
class _Way:
    """How a carried packet leaves: behind which nexthop, between which addresses."""

    reason: Reason
    nexthop: int
    source: Address
    destination: Address
    payload: bytes


class ScenicBudgets(Budgets):
    """The program's budgets, which somebody can have used before the scene begins."""

    def __init__(self, scene: Scene, now: int) -> None:
        super().__init__(KERNEL)
        self._spent.update({counter: (now, used) for counter, used in scene.spent.items()})

    def touched(self) -> list[Counter]:
        """The counters that are not as new."""
        return list(self._spent)


class Model:
    """A relay in the state of a scene that begins at stamp `now`."""

    def __init__(self, relay: Node, scene: Scene, now: int) -> None:
        self._relay = relay
        self._local = {vip.local: vip for vip in relay.vips}
        self._local_hosts = {host for host, _ in self._local}
        self._vips = {vip.id: vip for vip in (*relay.vips, *relay.theirs)}
        self._inner = {":" in host: host for host in relay.inner}
        self._inner_hosts = frozenset(relay.inner)
        self.budgets = ScenicBudgets(scene, now)
        public = {vip.public: vip.id for vip in relay.vips}
        self._socket = SocketDatapath(1024, public, relay.policy(), self.budgets, peers=relay.peers)
        for slot, place in world.PLACES.items():
            self._socket.write_peer(slot, place)
        self._socket.write_keys(world.KEYS)
        self._socket.beat(max(0, now - scene.heartbeat))
        for key, flow in scene.flows:
            self._socket.flows.install(key, moved(flow, now - NOW))

    def flow(self, key: FlowKey) -> Flow | None:
        return self._socket.flows.get(key)

    def judge(self, sent: Sent, now: int) -> Outcome:
        """The verdict at stamp `now`."""
        packet = parse(sent.frame)
        if packet is None:
            return Outcome(Reason.PASS_NOT_OURS, sent.frame)
        legs = self._legs(packet)
        if not legs:
            return Outcome(Reason.PASS_NOT_OURS, sent.frame)
        if legs - _roles(sent.carrier, packet.tags):
            return Outcome(Reason.DROP_WRONG_SIDE, None)
        if not packet.is_whole():
            return Outcome(Reason.DROP_BAD_LENGTH, None)
        is_reply = self._relay.transparent and legs == {_INNER}
        if packet.is_odd():
            if is_reply:
                return Outcome(Reason.DROP_REPLY_NOT_CARRIED, None)
            return self._handed_up(Reason.PUNT_ODD, sent, now)
        if legs == {_OUTER}:
            found = self._to_vip(packet, now)
        else:
            found = self._reply(packet, now) if is_reply else self._to_inner(packet, now)
        if isinstance(found, Reason):
            return Outcome(found, sent.frame if _is_handed_up(found) else None)
        return self._carried(packet, found, sent, now)

    def _handed_up(self, reason: Reason, sent: Sent, now: int) -> Outcome:
        found = self._socket.punt(reason, now)
        return Outcome(found, sent.frame if found is reason else None)

    def _legs(self, packet: Packet) -> set[Role]:
        """Which legs the packet belongs to; with hidden ports it may be both."""
        host = packet.destination
        if not packet.ports:
            outer = {_OUTER} if host in self._local_hosts else set()
            return outer | ({_INNER} if host in self._inner_hosts else set())
        if (host, packet.ports[1]) in self._local:
            return {_OUTER}
        if self._relay.transparent:
            is_endpoint = world.cluster_of(packet.client) and host not in self._relay.ours
            return {_INNER} if is_endpoint else set()
        is_ours = host in self._inner_hosts and packet.ports[1] in world.INNER_PORTS
        return {_INNER} if is_ours else set()

    def _to_vip(self, packet: Packet, now: int) -> Reason | _Way:
        assert packet.ports
        vip = self._local[packet.destination, packet.ports[1]]
        event = FromClient(packet.payload, FlowKey(packet.client, vip.id), 0)
        reason, action = self._socket.forward(event, now)
        if reason is not Reason.FORWARD:
            return reason
        assert isinstance(action, SendInner)
        flow = self._entry(action.key).installed
        if self._relay.transparent:
            return _Way(reason, flow.nexthop_in, packet.client, action.endpoint, action.payload)
        place = world.PLACES.get(flow.slot)
        return self._with_spp(reason, action, place.nexthop if place else flow.nexthop_in)

    def _with_spp(self, reason: Reason, action: SendInner, nexthop: int) -> _Way:
        ours = self._inner[":" in action.endpoint[0]], action.sport
        header = spp.encode(spp.Header(action.key.client, self._vips[action.key.vip].public))
        return _Way(reason, nexthop, ours, action.endpoint, header + action.payload)

    def _to_inner(self, packet: Packet, now: int) -> Reason | _Way:
        header, content = packet.payload[: spp.HEADER_SIZE], packet.payload[spp.HEADER_SIZE :]
        event = FromEndpoint(
            header, content, packet.client, packet.ports[1] if packet.ports else 0, 0
        )
        reason, action = self._socket.forward(event, now)
        if action is None:
            return reason
        entry = self._entry(action.key)
        if isinstance(action, SendInner):  # between a peer and an endpoint
            back = reason is Reason.RETURN
            into = entry.installed.nexthop_in
            nexthop = world.PLACES[BACK + entry.back].nexthop if back else into
            return self._with_spp(reason, action, nexthop)
        assert isinstance(action, SendOuter)
        nexthop = self._entry(action.key).installed.nexthop_out
        local = self._vips[action.key.vip].local
        return _Way(reason, nexthop, local, action.key.client, action.payload)

    def _reply(self, packet: Packet, now: int) -> Reason | _Way:
        """The transparent mode's inner leg: who is addressed is the client."""
        assert packet.ports
        vip = self._vip_of_family(packet.is_v6)
        client = packet.destination, packet.ports[1]
        entry = self._socket.flows.entry(FlowKey(client, vip.id)) if vip else None
        if not vip or entry is None or entry.endpoint != packet.client:
            return Reason.DROP_REPLY_WITHOUT_FLOW
        entry.seen_down = now
        entry.packets_down += 1
        entry.bytes_down += len(packet.payload)
        if packet.payload and packet.payload[0] >= NOT_STUN_FROM:
            entry.flags |= CONFIRMED
        nexthop = entry.installed.nexthop_out
        return _Way(Reason.RETURN, nexthop, vip.local, client, packet.payload)

    def _vip_of_family(self, v6: bool) -> Vip | None:
        return next((vip for vip in self._relay.vips if (":" in vip.local[0]) == v6), None)

    def _entry(self, key: FlowKey) -> Entry:
        entry = self._socket.flows.entry(key)
        assert entry
        return entry

    def _carried(self, packet: Packet, way: _Way, sent: Sent, now: int) -> Outcome:
        to_v6 = ":" in way.destination[0]
        crosses = self._relay.transparent and to_v6 != packet.is_v6
        if to_v6 and not packet.sum and not crosses:  # only the kernel computes one
            return self._handed_up(Reason.PUNT_ODD, sent, now)
        nexthop = None if crosses else world.NEXTHOPS.get(way.nexthop)
        length = ip_length(way.destination, way.payload)
        if not nexthop or not nexthop.valid or length > nexthop.mtu:
            if self._relay.transparent and way.reason is Reason.RETURN:
                return Outcome(Reason.DROP_REPLY_NOT_CARRIED, None)
            return self._handed_up(Reason.PUNT_NEXTHOP, sent, now)
        frame = self._rewritten(packet, way, nexthop)
        if len(frame) - len(sent.frame) > HEAD_ROOM - sent.metadata:
            return Outcome(Reason.DROP_HEADROOM, None)
        if nexthop.port not in world.PORTS:
            return Outcome(Reason.DROP_REDIRECT, None)
        return Outcome(way.reason, frame)

    def _rewritten(self, packet: Packet, way: _Way, nexthop: Nexthop) -> bytes:
        if self._relay.transparent:
            return readdressed(packet, nexthop, way.source, way.destination)
        return with_headers(packet, nexthop, way.source, way.destination, way.payload)


def _roles(carrier: str, tags: tuple[int, int]) -> set[Role]:
    for link in LINKS:
        if (link.carrier, link.tags) == (carrier, tags):
            return {_OUTER, _INNER} if link.role is Role.BOTH else {link.role}
    return set()


def _is_handed_up(reason: Reason) -> bool:
    return reason.name.startswith(("PUNT_", "PASS_"))
