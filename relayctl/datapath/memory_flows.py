"""The flow table of the socket datapath: a dictionary whose entries change in place."""

from collections.abc import Iterator

from relayctl.flow import Flow, FlowKey, pack_flow
from relayctl.wire.address import pack_host
from relayctl.wire.route_token import Route


class Entry:
    """A flow whose stamps, counters and token change in place, as those of a map element do."""

    __slots__ = (
        "answers",
        "back",
        "bytes_down",
        "bytes_up",
        "contended",
        "endpoint",
        "flags",
        "installed",
        "packets_down",
        "packets_up",
        "seen_down",
        "seen_up",
        "sport",
        "ssrc",
        "token",
    )

    def __init__(self, flow: Flow) -> None:
        self.installed = flow
        self.endpoint = flow.endpoint
        self.sport = flow.sport
        self.flags = flow.flags
        self.back = flow.back
        self.token = flow.token
        self.ssrc = flow.ssrc
        self.contended, self.answers = flow.contended, flow.answers
        self.seen_up, self.seen_down = flow.seen_up, flow.seen_down
        self.packets_up, self.packets_down = flow.packets_up, flow.packets_down
        self.bytes_up, self.bytes_down = flow.bytes_up, flow.bytes_down

    def leads_to(self, route: Route) -> bool:
        """Whether a token's route names this flow's endpoint."""
        if self.installed.slot:  # the peer judges which endpoint it is
            return route.cluster == self.installed.cluster
        host, port = self.endpoint
        return (route.cluster, route.host, route.port) == (
            self.installed.cluster,
            int.from_bytes(pack_host(host)[12:], "big"),
            port,
        )

    def flow(self) -> Flow:
        return self.installed._replace(
            flags=self.flags,
            back=self.back,
            token=self.token,
            ssrc=self.ssrc,
            contended=self.contended,
            answers=self.answers,
            seen_up=self.seen_up,
            seen_down=self.seen_down,
            packets_up=self.packets_up,
            packets_down=self.packets_down,
            bytes_up=self.bytes_up,
            bytes_down=self.bytes_down,
        )


class MemoryFlows:
    """The flow table as a dictionary of the packet process."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._entries: dict[FlowKey, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, key: FlowKey) -> Entry | None:
        return self._entries.get(key)

    def get(self, key: FlowKey) -> Flow | None:
        entry = self._entries.get(key)
        return entry.flow() if entry else None

    def install(self, key: FlowKey, flow: Flow) -> bool:
        if key not in self._entries and len(self._entries) >= self.capacity:
            return False
        self._entries[key] = Entry(flow)
        return True

    def delete(self, key: FlowKey) -> bool:
        return self._entries.pop(key, None) is not None

    def items(self) -> Iterator[tuple[FlowKey, Flow]]:
        for key, entry in list(self._entries.items()):
            yield key, entry.flow()

    def batches(self) -> Iterator[tuple[bytes, bytes]]:
        for key, flow in self.items():
            yield key, pack_flow(flow)
