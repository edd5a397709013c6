"""The control process's handle on a socket datapath: a copy that the packet process keeps sending.

Reads are up to a heartbeat old; deletes are commands, which the packet process checks again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from relayctl.datapath.base import DatapathError, Nexthop, PeerPlace
from relayctl.flow import Flow, FlowKey, pack_flow
from relayctl.reason import Reason
from relayctl.wire.route_token import Key


class MirrorFlows:
    """The last complete copy of the flow table."""

    def __init__(self, capacity: int, expire: Callable[[FlowKey], bool]) -> None:
        """`expire` asks the packet process to delete a flow that is over."""
        self.capacity = capacity
        self._flows: dict[FlowKey, Flow] = {}
        self._expire = expire

    def replace(self, flows: Iterable[tuple[FlowKey, Flow]]) -> None:
        self._flows = dict(flows)

    def get(self, key: FlowKey) -> Flow | None:
        return self._flows.get(key)

    def install(self, key: FlowKey, flow: Flow) -> bool:
        raise DatapathError("only the packet process installs flows; send it a packet")

    def delete(self, key: FlowKey) -> bool:
        if key not in self._flows or not self._expire(key):
            return False
        del self._flows[key]
        return True

    def items(self) -> Iterator[tuple[FlowKey, Flow]]:
        yield from list(self._flows.items())

    def batches(self) -> Iterator[tuple[bytes, bytes]]:
        for key, flow in self.items():
            yield key, pack_flow(flow)


class MirrorDatapath:
    """A datapath whose facts arrive over the channel."""

    name = "socket"

    def __init__(self, capacity: int, expire: Callable[[FlowKey], bool]) -> None:
        self.flows = MirrorFlows(capacity, expire)
        self._reasons: dict[Reason, int] = {}
        self._alive = 0

    def nexthops(self) -> Mapping[int, Nexthop]:
        return {}

    def write_nexthop(self, index: int, nexthop: Nexthop | None) -> None:
        """Nothing to write."""

    def write_peer(self, slot: int, place: PeerPlace | None) -> None:
        """Nothing to write: the packet process knows."""

    def write_keys(self, keys: Mapping[int, Key]) -> None:
        """Nothing to write: the packet process reads them itself."""

    def beat(self, now: int) -> None:
        self._alive = now

    def alive(self) -> int:
        return self._alive

    def reasons(self) -> dict[Reason, int]:
        return dict(self._reasons)

    def write_slow_reasons(self, counts: Mapping[Reason, int]) -> None:
        """Take over the totals of a heartbeat: program and packet process together."""
        self._reasons = dict(counts)

    def close(self) -> None:
        """Nothing is held."""
