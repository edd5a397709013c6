"""A view for tests of decisions: one cluster and one VIP of each family, nexthops by side."""

import ipaddress

from relayctl.address_policy import AddressPolicy
from relayctl.flow import Flow, FlowKey
from relayctl.hints import Hints
from relayctl.packet.actions import Action, Displace, FromClient, Install
from relayctl.packet.lookups import Lookups
from relayctl.packet.takeover import Takeovers
from relayctl.packet.token_flows import Crowd, TokenFlows
from relayctl.peers import Peers
from relayctl.wire import spp
from relayctl.wire.address import Address, unpack_host, widened
from relayctl.wire.cluster import Cluster, Clusters
from relayctl.wire.route_token import Key
from tests.unit.relayctl.packets import KEY, VIP, VIP_6

CLUSTER = Cluster(7, (ipaddress.ip_network("10.2.0.0/24"),))
CLUSTER_6 = Cluster(
    9, (ipaddress.ip_network("fd00:2::/112"),), prefix=ipaddress.IPv6Network("fd00:2::/96")
)
_VIPS = {VIP: 1, VIP_6: 2}


class FakeView:
    """A view whose nexthops are 1 towards endpoints and 2 towards everybody else."""

    def __init__(self, transparent: bool = False, peers: Peers | None = None) -> None:
        self.keys: dict[int, Key] = {1: KEY}
        self.clusters = Clusters([CLUSTER, CLUSTER_6])
        self.hints = Hints()
        self.lookups: Lookups[FromClient] | None = None
        self.tombstones: dict[FlowKey, int] = {}
        self.pending = Takeovers()
        self.tokens = TokenFlows()
        self.peers = peers or Peers()
        self.transparent = transparent
        self.flows: dict[FlowKey, Flow] = {}
        self.unreachable: set[str] = set()
        self.nexthops = {"inner": 1, "outer": 2}
        own = [*_VIPS, ("10.2.0.1", 5100), ("fd00:2::1", 5100)]
        self._policy = AddressPolicy([CLUSTER, CLUSTER_6], own)

    def carry_out(self, actions: list[Action]) -> None:
        """Change the flows as the actions say."""
        for action in actions:
            if isinstance(action, Install):
                self.flows[action.key] = action.flow
                self.tokens.add(action.flow.token, action.key)
            elif isinstance(action, Displace):
                del self.flows[action.key]

    def flow(self, key: FlowKey) -> Flow | None:
        return self.flows.get(key)

    def crowd(self, token: bytes) -> Crowd:
        return self.tokens.crowd(token, self.flows.get)

    def vip(self, public: Address) -> int | None:
        return _VIPS.get(public)

    def inner_port(self, client: bytes) -> int:
        return 0 if self.transparent else spp.inner_port(client)

    def nexthop(self, host: bytes) -> int | None:
        if unpack_host(widened(host)) in self.unreachable:
            return None
        is_inner = host.startswith((b"\x0a\x02", b"\xfd\0\0\x02"))
        return self.nexthops["inner" if is_inner else "outer"]

    def refuses(self, client: bytes) -> bool:
        return self._policy.refuses(client)

    def owner(self, endpoint: Address) -> int | None:
        return self._policy.owner(endpoint)
