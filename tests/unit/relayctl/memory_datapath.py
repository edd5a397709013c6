"""A datapath in plain memory, for tests of what reads one."""

from collections.abc import Iterator, Mapping

from relayctl.datapath.base import Nexthop, PeerPlace
from relayctl.flow import Flow, FlowKey, Prefixes, pack_flow, unpack_flow
from relayctl.reason import Reason
from relayctl.wire.route_token import Key


class MemoryFlows:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.prefixes: Prefixes = {}
        self._flows: dict[FlowKey, Flow] = {}

    def get(self, key: FlowKey) -> Flow | None:
        return self._flows.get(key)

    def install(self, key: FlowKey, flow: Flow) -> bool:
        if key not in self._flows and len(self._flows) >= self.capacity:
            return False
        self._flows[key] = flow
        return True

    def install_new(self, key: bytes, flow: bytes) -> bool:
        known = FlowKey.read(key)
        return known not in self._flows and self.install(known, unpack_flow(flow, self.prefixes))

    def delete(self, key: FlowKey) -> bool:
        return self._flows.pop(key, None) is not None

    def items(self) -> Iterator[tuple[FlowKey, Flow]]:
        yield from list(self._flows.items())

    def batches(self) -> Iterator[tuple[bytes, bytes]]:
        for key, flow in self.items():
            yield key, pack_flow(flow)


class MemoryDatapath:
    def __init__(self, capacity: int = 1024, name: str = "xdp-native") -> None:
        self.name = name
        self.flows = MemoryFlows(capacity)
        self.closed = False
        self._nexthops: dict[int, Nexthop] = {}
        self._reasons: dict[Reason, int] = {}
        self._beat = 0
        self.peers: dict[int, PeerPlace | None] = {}
        self.keys: Mapping[int, Key] = {}

    def nexthops(self) -> Mapping[int, Nexthop]:
        return self._nexthops

    def write_nexthop(self, index: int, nexthop: Nexthop | None) -> None:
        if nexthop is None:
            self._nexthops.pop(index, None)
        else:
            self._nexthops[index] = nexthop

    def write_peer(self, slot: int, place: PeerPlace | None) -> None:
        self.peers[slot] = place

    def write_keys(self, keys: Mapping[int, Key]) -> None:
        self.keys = keys

    def beat(self, now: int) -> None:
        self._beat = now

    def alive(self) -> int:
        return self._beat

    def reasons(self) -> dict[Reason, int]:
        return dict(self._reasons)

    def write_slow_reasons(self, counts: Mapping[Reason, int]) -> None:
        self._reasons |= counts

    def close(self) -> None:
        self.closed = True
