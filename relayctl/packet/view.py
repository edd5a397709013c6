"""What the packet process knows: the `View` that decisions look at, kept current by the channel.

It writes one thing: the number and the empty table entry of a nexthop that nobody used before.
"""

from collections.abc import Callable, Iterable, Mapping

from relayctl.address_policy import AddressPolicy
from relayctl.config import RelayConfig
from relayctl.datapath.base import Datapath, Nexthop, PeerPlace
from relayctl.flow import Flow, FlowKey
from relayctl.hints import Hints
from relayctl.packet.actions import FromClient
from relayctl.packet.lookups import Lookups
from relayctl.packet.takeover import Takeovers
from relayctl.packet.token_flows import Crowd, TokenFlows
from relayctl.peers import Peers
from relayctl.routes import NexthopIndex, Routes, Way
from relayctl.wire import spp
from relayctl.wire.address import Address, compact
from relayctl.wire.cluster import Clusters
from relayctl.wire.route_token import Key

TOMBSTONE_NS = 30_000_000_000
MAX_TOMBSTONES = 65536
RETIRE_AFTER = 56  # units a nexthop stays reserved after its last use


class PacketView:
    """The state of the packet process. Times are CLOCK_MONOTONIC in ns; `stamp` is in units."""

    def __init__(
        self,
        config: RelayConfig,
        datapath: Datapath,
        keys: Mapping[int, Key],
        reserved: Callable[[int, Way], object],
        policy: AddressPolicy | None = None,
    ) -> None:
        """`reserved` is told each new nexthop. `policy`: that of the configuration, which the
        datapath may share."""
        self.keys = keys
        self.clusters = Clusters(section.cluster() for section in config.clusters)
        self.hints = Hints()
        self.lookups: Lookups[FromClient] | None = Lookups() if config.redis else None
        self.tombstones: dict[FlowKey, int] = {}
        self.pending = Takeovers()
        self.tokens = TokenFlows()
        self.transparent = config.inner == "transparent"
        self.stamp = 0
        self.nexthop_full = 0
        ours = {vip.id: vip.public for vip in config.vips}
        self.peers = Peers(config.relays(), config.via())
        self.public = {**ours, **self.peers.public}
        self.policy = policy or address_policy(config)
        self._vips = {public: id for id, public in ours.items()}
        self._datapath = datapath
        self._ports = config.inner_port_base, config.inner_ports
        self._in_kernel = config.datapath == "xdp"
        self._routes: Routes | None = None
        self._index = NexthopIndex(datapath.nexthops())
        self._reserved = reserved
        self._remembered: dict[bytes, int] = {}  # compact host → nexthop
        self._remembered_at = 0  # stamp
        self._written: dict[int, PeerPlace | None] = {}  # slots of peers

    @property
    def is_ready(self) -> bool:
        """Whether decisions can be made: the kernel's part needs routes."""
        return not self._in_kernel or self._routes is not None

    def take_routes(self, routes: Routes) -> None:
        """Gateways get their nexthops at once: the first call is not to wait for a MAC address."""
        self._routes = routes
        self._remembered.clear()
        self._use_gateways()
        self.lead_peers()

    def take_live_peers(self, ids: Iterable[int]) -> None:
        """Only these peers live now."""
        self.peers.take(ids)
        self.lead_peers()

    def lead_peers(self) -> None:
        """Bring the slots of peers up to date: each beat, since their nexthops are in use too."""
        for slot, host in self.peers.places().items():
            index = self.nexthop(compact(host)) if host else None
            place = None if host is None or index is None else PeerPlace(host, index)
            if slot not in self._written or self._written[slot] != place:
                self._datapath.write_peer(slot, place)
                self._written[slot] = place

    def _use_gateways(self) -> None:
        for way in self._routes.gateways() if self._routes else ():
            if way.port:
                self._index_of(way)

    def flow(self, key: FlowKey) -> Flow | None:
        return self._datapath.flows.get(key)

    def vip(self, public: Address) -> int | None:
        return self._vips.get(public)

    def crowd(self, token: bytes) -> Crowd:
        return self.tokens.crowd(token, self._datapath.flows.get)

    def inner_port(self, client: bytes) -> int:
        if self.transparent:
            return 0
        return spp.inner_port(client, *self._ports)

    def refuses(self, client: bytes) -> bool:
        return self.policy.refuses(client)

    def owner(self, endpoint: Address) -> int | None:
        return self.policy.owner(endpoint)

    def nexthop(self, host: bytes) -> int | None:
        if not self._in_kernel:
            return 0
        if self._remembered_at != self.stamp:  # in each unit every nexthop in use is touched
            self._remembered_at = self.stamp
            self._remembered.clear()
        index = self._remembered.get(host)
        if index is None:
            way = self._routes.way(host) if self._routes else None
            if way is None:
                return None
            # port 0: it leaves by an interface without the program
            index = self._index_of(way) if way.port else 0
            if index:
                self._remembered[host] = index
        return index

    def _index_of(self, way: Way) -> int:
        index = self._index.find(way, self.stamp)
        if index is None:
            index = self._index.reserve(way, self.stamp)
            if not index:
                self.nexthop_full += 1
                return 0
            entry = Nexthop(way.port, way.gateway, mtu=way.mtu)
            self._datapath.write_nexthop(index, entry)
            self._reserved(index, way)
        return index

    def retire(self, index: int) -> bool:
        """Give up a nexthop without flows. False if it was used a moment ago, or is a gateway."""
        self._use_gateways()
        if not self._index.release(index, self.stamp, RETIRE_AFTER):
            return False
        self._datapath.write_nexthop(index, None)
        return True

    def bury(self, key: FlowKey, now: int) -> None:
        """Keep return packets from making `key`'s flow again for a while."""
        self.tombstones.pop(key, None)
        self.tombstones[key] = now + TOMBSTONE_NS
        while len(self.tombstones) > MAX_TOMBSTONES or self._oldest_is_over(now):
            del self.tombstones[next(iter(self.tombstones))]

    def _oldest_is_over(self, now: int) -> bool:
        return bool(self.tombstones) and next(iter(self.tombstones.values())) <= now


def address_policy(config: RelayConfig) -> AddressPolicy:
    sockets = [address for vip in config.vips for address in (vip.local, vip.public)]
    sockets += [(host, port) for host in config.inner_addresses for port in config.inner_port_range]
    return AddressPolicy(
        [section.cluster() for section in config.clusters if not section.via],
        sockets,
        inner_clients=config.allow_inner_clients,
        local=config.dev_local,
    )
