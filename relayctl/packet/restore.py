"""Installs flows that Redis kept: all of a site when a relay starts empty, single ones for clients
that came here from another relay.

What stands in Redis is data and not trust: an entry has to pass what its token would have to pass,
and its flow is `new` until the endpoint answers here. A flow that is there already stays as it is.
"""

import itertools
import struct
from typing import NamedTuple

from relayctl import cached_flow
from relayctl.datapath.base import FlowTable, PackedFlows
from relayctl.flow import KEY_V4, KEY_V6, TO_PEER, VALUE, Flow, FlowKey, units, unpack_flow
from relayctl.packet import routing
from relayctl.packet.actions import Displace
from relayctl.packet.routing import Drop
from relayctl.packet.upkeep import Upkeep
from relayctl.packet.view import PacketView
from relayctl.wire.address import MAPPED, compact, is_v6, unpack_host

# A record, field by field; the SSRC stays as it stood in the packet
_RECORD = struct.Struct("!B24sB8s16sHH4s")

# A flow as it is made: token, endpoint and cluster, nexthops in and out, inner port, flags ·
# SSRC · born
_FLOW = struct.Struct("=8s8sHH2sxB8x4s12xI20x")
_PLACE = struct.Struct("=4s2sH")  # endpoint and cluster

assert _FLOW.size == VALUE.size
assert _RECORD.size == cached_flow.RECORD_KEY.size + cached_flow.VALUE.size


class _Place(NamedTuple):
    """An endpoint that may have flows, as they name it; `prefix` is that of its cluster. With the
    flag `TO_PEER` a relay is in its place, or has to be chosen yet."""

    packed: bytes
    nexthop: int
    cluster: int
    prefix: bytes
    v6: bool
    flags: int = 0


class _Fresh(NamedTuple):
    """A flow to install, as the map takes it."""

    key: bytes
    flow: bytes
    token: bytes
    place: _Place

    def unpacked(self) -> tuple[FlowKey, Flow]:
        prefixes = {self.place.cluster: self.place.prefix}
        return FlowKey.read(self.key), unpack_flow(self.flow, prefixes)


class Restore:
    """Counts flows that it `installed` and that it `refused`. One that was there already is
    neither, nor one without room in the table."""

    def __init__(self, view: PacketView, flows: FlowTable, upkeep: Upkeep) -> None:
        self._view = view
        self._flows = flows
        self._packed = flows if isinstance(flows, PackedFlows) else None
        self._upkeep = upkeep
        self._layouts = {
            vip: KEY_V6 if is_v6(host) else KEY_V4
            for vip, (host, _) in view.public.items()
            if not view.peers.is_theirs(vip)
        }
        self.installed = self.refused = 0

    def take(self, records: bytes, now: int) -> list[bytes]:
        """Install what joined records say, at `now` (CLOCK_MONOTONIC, ns); keys of new flows.

        Step by step for all of them: mixed, the steps take twice as long.
        """
        lone, crowded = self._judge(records, now)
        done = list(itertools.compress(lone, list(map(self._install, lone))))
        self._upkeep.opened(done)
        keys = [each.key for each in done]
        keys += [each.key for each in crowded if self._squeeze_in(each, now)]
        self.installed += len(keys)
        return keys

    def _judge(self, records: bytes, now: int) -> tuple[list[_Fresh], list[_Fresh]]:
        """Flows that may be: those alone with their token, and those that share one."""
        tokens, stamp = self._view.tokens, units(now)
        places: dict[tuple[bytes, int, int], _Place | None] = {}
        lone: list[_Fresh] = []
        crowded: list[_Fresh] = []
        for size, padded, version, token, host, port, cluster, ssrc in _RECORD.iter_unpack(records):
            key, named = padded[:size], (host, port, cluster)
            if named not in places:
                places[named] = self._place(host, port, cluster)
            place = places[named]
            way = self._way(key, place, now) if place else None
            if place is None or way is None or version != cached_flow.VERSION:
                self.refused += 1
                continue
            place, out, sport = way
            into, flags = place.nexthop, place.flags
            flow = _FLOW.pack(token, place.packed, into, out, sport, flags, ssrc, stamp)
            row = crowded if token in tokens else lone
            row.append(_Fresh(key, flow, token, place))
            if row is lone:
                tokens.add(token, key)
        return lone, crowded

    def _place(self, host: bytes, port: int, cluster: int) -> _Place | None:
        """The endpoint of a cluster, if it may have flows and there is a way."""
        if host == cached_flow.BY_PEER:
            return _Place(b"", 0, cluster, MAPPED, False, TO_PEER)
        endpoint = unpack_host(host), port
        if self._view.owner(endpoint) != cluster:
            return None
        into = self._view.nexthop(compact(endpoint[0]))
        if into is None:
            return None
        packed = _PLACE.pack(host[12:], port.to_bytes(2, "big"), cluster)
        return _Place(packed, into, cluster, host[:12], is_v6(endpoint[0]))

    def _way(self, key: bytes, place: _Place, now: int) -> tuple[_Place, int, bytes] | None:
        """Of a client, if it may be one: endpoint or peer, nexthop and inner port."""
        view = self._view
        layout = KEY_V4 if len(key) == KEY_V4.size else KEY_V6
        client, vip = layout.unpack(key)
        if self._layouts.get(vip) is not layout or view.refuses(client):
            return None
        if view.tombstones and view.tombstones.get(FlowKey.read(key), 0) > now:
            return None
        if view.transparent and place.v6 is not (layout is KEY_V6):
            return None  # there is no header that could carry the other family
        out = view.nexthop(client[:-2])
        if out is None:
            return None
        sport = view.inner_port(client).to_bytes(2, "big")
        if place.flags & TO_PEER:
            slot = view.peers.choose(place.cluster, client, vip)
            if not slot:
                return None
            packed = _PLACE.pack(slot.to_bytes(4, "big"), sport, place.cluster)
            place = place._replace(packed=packed)
        return place, out, sport

    def _install(self, fresh: _Fresh) -> bool:
        if self._packed is not None:
            return self._packed.install_new(fresh.key, fresh.flow)
        key, flow = fresh.unpacked()
        return self._flows.get(key) is None and self._flows.install(key, flow)

    def _squeeze_in(self, fresh: _Fresh, now: int) -> bool:
        """Install a flow whose token others bear, within what one token may have."""
        key, flow = fresh.unpacked()
        if self._flows.get(key) is not None:
            return False
        try:
            actions = routing.install(key, flow, self._view)
        except Drop:
            self.refused += 1
            return False
        for action in actions:
            if isinstance(action, Displace):
                self._upkeep.displace(action.key, now)
        if not self._flows.install(key, flow):
            return False
        self._upkeep.installed(key, flow)
        return True
