"""Scenes by chance, for the node that is asked for: the same ones for the same seed.

Pure. Most frames are such as a relay sees, with one thing or two about them at the edge of what
the rules say; some are damaged at random.
"""

import random
from collections.abc import Iterator, Sequence

from relayctl.datapath.spec import Role, Vip
from relayctl.flow import Flow, FlowKey
from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.oracle import addresses, damage, node, payloads, state
from tests.oracle.frame import build, udp_checksum
from tests.oracle.node import LINKS, ROLELESS, Link, Node
from tests.oracle.scene import NOW, Scene, Sent
from tests.oracle.shapes import shape
from tests.oracle.state import State

FRAMES = 64  # in a scene


class Generator:
    def __init__(self, relay: Node, source: random.Random) -> None:
        self._relay = relay
        self._random = source
        self._state = State()

    def scenes(self) -> Iterator[Scene]:
        while True:
            yield self.scene()

    def scene(self, frames: int = FRAMES) -> Scene:
        source = self._random
        self._state = state.by_chance(source, self._relay)
        found: list[Sent] = []
        while len(found) < frames:
            repeat = source.randrange(2, 24) if source.random() < 0.01 else 1
            found += [self._sent()] * repeat
        return Scene(
            node=self._relay.name,
            flows=tuple(self._state.flows),
            frames=tuple(found[:frames]),
            heartbeat=source.choice([0] * 12 + [1, 2, 3, NOW]),
            spent=state.spent(source, self._state),
        )

    def _sent(self) -> Sent:
        source = self._random
        inner = source.random() < 0.4
        if not inner:
            frame = self._from_client()
        elif self._relay.transparent:
            frame = self._reply()
        else:
            frame = self._from_endpoint()
        link, frame = self._arrive(Role.INNER if inner else Role.OUTER, frame)
        if source.random() < 0.12:
            frame = damage.damaged(source, frame)
        metadata = source.choice([4, 32, 200]) if source.random() < 0.01 else 0
        return Sent(link.carrier, frame, metadata)

    def _arrive(self, leg: Role, frame: bytes) -> tuple[Link, bytes]:
        """Put the frame on an interface, as a rule on one that may bring it."""
        source = self._random
        fitting = [link for link in LINKS if link.role in (leg, Role.BOTH)]
        link = source.choice(fitting if source.random() < 0.93 else LINKS)
        if source.random() < 0.01:
            link = Link(ROLELESS, Role.BOTH)
        return link, damage.tagged(source, frame, link.tags)

    def _some_flow(self) -> tuple[FlowKey, Flow] | None:
        source = self._random
        if not self._state.flows or source.random() < 0.25:
            return None
        return source.choice(self._state.flows)

    def _vip(self, id: int) -> Vip:
        return next(vip for vip in (*self._relay.vips, *self._relay.theirs) if vip.id == id)

    def _from_client(self) -> bytes:
        source = self._random
        found = self._some_flow()
        if found:
            key, flow = found
            client, vip = key.client, self._vip(key.vip)
        else:
            vip, flow = source.choice(self._relay.vips), None
            client = addresses.any_client(source, self._relay, addresses.is_v6(vip.local))
        content = self._content(flow)
        if flow and not self._relay.transparent and source.random() < 0.05:
            content = self._summing_up(client, vip, flow, content)
        to = vip.local
        if source.random() < 0.03:
            to = addresses.other_destination(source, self._relay, to)
        return build(client, to, content, shape(source))

    def _content(self, flow: Flow | None) -> bytes:
        """A payload; where a link of the flow is small, often one that just fits or does not."""
        source = self._random
        if flow and node.SMALL in (flow.nexthop_in, flow.nexthop_out) and source.random() < 0.3:
            headers = source.choice([28, 48]) + source.choice([0, spp.HEADER_SIZE])
            return b"\x80" + bytes(node.SMALL_MTU - headers - 1 + source.randrange(-1, 2))
        return payloads.payload(source, self._state.tokens)

    def _summing_up(self, client: Address, vip: Vip, flow: Flow, content: bytes) -> bytes:
        """The payload with its end changed so that the inner checksum comes out as zero."""
        v6 = addresses.is_v6(flow.endpoint)
        ours = next(host for host in self._relay.inner if (":" in host) == v6), flow.sport
        header = spp.encode(spp.Header(client, vip.public))
        return damage.balanced(
            content, lambda changed: udp_checksum(ours, flow.endpoint, header + changed)
        )

    def _from_endpoint(self) -> bytes:
        """A datagram to our inner ports."""
        source = self._random
        found = self._some_flow()
        if found:
            key, flow = found
            client, vip, sender = key.client, self._vip(key.vip), flow.endpoint
            if self._relay.has_peers:
                sender = self._by_peer(key, flow)
        else:
            flow = None
            vip = source.choice((*self._relay.vips, *self._relay.theirs))
            client = addresses.client(source, self._relay, addresses.is_v6(vip.local))
            sender = addresses.endpoint(source)
            if self._relay.has_peers and source.random() < 0.4:
                sender = source.choice(node.PEERS).host, source.choice(node.INNER_PORTS)
        proxy = vip.public
        match source.randrange(25):
            case 0:
                sender = sender[0], sender[1] ^ 1
            case 1:
                sender = addresses.endpoint(source)
            case 2:
                sender = addresses.stranger(source, addresses.is_v6(sender))
            case 3:
                proxy = vip.local
            case 4:
                proxy = proxy[0], proxy[1] ^ 1
            case 5:
                proxy = source.choice(self._relay.vips).public
            case 6:
                client = client[0], source.randrange(65536)
        content = self._content(flow)
        header = spp.encode(spp.Header(client, proxy))
        if source.random() < 0.05:
            content = damage.balanced(
                content, lambda changed: udp_checksum(vip.local, client, changed)
            )
        if source.random() < 0.06:
            header = damage.damaged(source, header)
        return build(sender, self._inner_port(sender), header + content, shape(source))

    def _by_peer(self, key: FlowKey, flow: Flow) -> Address:
        """Who sends for a flow: the peer that it goes by, or one that brings its client."""
        source = self._random
        place = node.PLACES.get(flow.slot)
        if place:
            return place.host, flow.endpoint[1]
        if flow.slot or (self._relay.peers.is_theirs(key.vip) and source.random() < 0.6):
            return source.choice(node.PEERS).host, flow.sport
        return flow.endpoint

    def _inner_port(self, sender: Address) -> Address:
        source = self._random
        v6 = addresses.is_v6(sender)
        ours = next(host for host in self._relay.inner if (":" in host) == v6)
        if source.random() < 0.03:
            return ours, source.choice([5099, 5116, 0, 3478])
        return ours, source.choice(node.INNER_PORTS)

    def _reply(self) -> bytes:
        """A datagram that an endpoint sends straight to a client."""
        source = self._random
        found = self._some_flow()
        if found:
            key, flow = found
            client, sender = key.client, flow.endpoint
        else:
            flow = None
            client = addresses.client(source, self._relay, source.random() < 0.5)
            sender = addresses.endpoint(source)
        match source.randrange(20):
            case 0:
                sender = sender[0], sender[1] ^ 1
            case 1:
                sender = sender[0], source.choice([1023, 1024, 3999, 4000, 6000, 6001, 65535, 0])
            case 2:
                sender = addresses.stranger(source, addresses.is_v6(sender))
            case 3:
                hosts: Sequence[str] = sorted(self._relay.ours)
                client = source.choice(hosts), source.choice([3478, client[1]])
            case 4:
                client = client[0], client[1] ^ 1
        if addresses.is_v6(client) != addresses.is_v6(sender):
            client = addresses.client(source, self._relay, addresses.is_v6(sender))
        return build(sender, client, self._content(flow), shape(source))
