"""A view for tests of decisions: one cluster, one VIP, nexthops by side."""

import ipaddress

from relayctl.address_policy import AddressPolicy
from relayctl.flow import Flow, FlowKey
from relayctl.hints import Hints
from relayctl.packet.actions import Pending
from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.cluster import Cluster, Clusters
from relayctl.wire.route_token import Key
from tests.unit.relayctl.packets import KEY, VIP

CLUSTER = Cluster(7, (ipaddress.ip_network("10.2.0.0/24"),))


class FakeView:
    """A view whose nexthops are 1 towards endpoints and 2 towards everybody else."""

    def __init__(self) -> None:
        self.keys: dict[int, Key] = {1: KEY}
        self.clusters = Clusters([CLUSTER])
        self.hints = Hints()
        self.tombstones: dict[FlowKey, int] = {}
        self.pending: dict[FlowKey, Pending] = {}
        self.flows: dict[FlowKey, Flow] = {}
        self.unreachable: set[str] = set()
        self.nexthops = {"inner": 1, "outer": 2}
        self._policy = AddressPolicy([CLUSTER], [VIP, ("10.2.0.1", 5100)])

    def flow(self, key: FlowKey) -> Flow | None:
        return self.flows.get(key)

    def vip(self, public: Address) -> int | None:
        return 1 if public == VIP else None

    def inner_port(self, client: Address) -> int:
        return spp.inner_port(client)

    def nexthop(self, host: str) -> int | None:
        if host in self.unreachable:
            return None
        return self.nexthops["inner" if host.startswith("10.2.") else "outer"]

    def refuses(self, client: Address) -> bool:
        return self._policy.refuses(client)

    def owner(self, endpoint: Address) -> int | None:
        return self._policy.owner(endpoint)
