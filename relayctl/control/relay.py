"""What the control process knows of the relay: asked by the API and the metrics.

It only reads, except for `delete`, which is a command to the packet process.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from relayctl.config import RelayConfig
from relayctl.control.flow_cache import FlowCache
from relayctl.control.metrics import Snapshot
from relayctl.control.peers import PeerWatch
from relayctl.control.sweeper import Sweeper
from relayctl.control.watchdog import FRESH_S
from relayctl.datapath import maps
from relayctl.datapath.base import Datapath, Nexthop
from relayctl.datapath.spec import Interface, Role
from relayctl.flow import Flow, FlowKey, units
from relayctl.inspect import records
from relayctl.inspect.records import Record
from relayctl.messages import DeleteFlow, Heartbeat, Message
from relayctl.reason import Reason
from relayctl.routes import Routes
from relayctl.wire.address import Address, render

DELETE_S = 1.0  # patience until a delete shows
DELETE_LOOKS = 100


def stamp() -> int:
    """Now, in units."""
    return units(time.monotonic_ns())


class PacketSide(Protocol):
    """The packet process, as far as one can see."""

    heartbeat: Heartbeat | None

    @property
    def pid(self) -> int: ...

    @property
    def dropped(self) -> int: ...

    def silent_s(self) -> float: ...

    def send(self, message: Message) -> bool: ...


class NexthopSide(Protocol):
    """The nexthop table, as far as one can see."""

    @property
    def routes(self) -> Routes: ...

    @property
    def entries(self) -> Mapping[int, Nexthop]: ...

    def failed(self) -> int: ...

    def lost(self) -> list[str]: ...


class Kernel(Protocol):
    """What only the XDP datapath has, as far as one can see."""

    @property
    def nexthops(self) -> NexthopSide: ...

    @property
    def interfaces(self) -> Sequence[Interface]: ...


class Relay:
    """One running relay. `attached` gives the indices of interfaces that carry the program."""

    def __init__(
        self,
        config: RelayConfig,
        datapath: Datapath,
        packet: PacketSide,
        sweeper: Sweeper,
        kernel: Kernel | None,
        attached: Callable[[], list[int]],
        replacements: Callable[[], int],
        is_loading: Callable[[], bool],
        peers: PeerWatch,
        cache: FlowCache | None,
    ) -> None:
        """`kernel` is None without XDP, `cache` without Redis. `replacements`: of hung packet
        processes. `is_loading`: whether flows of Redis are under way to an empty table."""
        self.config = config
        self.draining = False
        self._peers = peers
        self._cache = cache
        self._datapath = datapath
        self.name = datapath.name
        self._packet = packet
        self._sweeper = sweeper
        self._kernel = kernel
        self._nexthops = kernel.nexthops if kernel else None
        self._attached = attached
        self._replacements = replacements
        self._is_loading = is_loading
        self._started = time.monotonic()
        self._vips = {vip.id: render(vip.public) for vip in config.vips}
        self._vips |= {vip.id: render(vip.public) for each in config.peers for vip in each.vips}

    def attached_as(self, name: str) -> None:
        """The program went onto the interfaces: the datapath's name tells the mode."""
        self.name = name

    @property
    def in_kernel(self) -> bool:
        return self.config.datapath == "xdp"

    def faults(self) -> list[str]:
        """Why the relay is not ready; nothing when it is."""
        return [
            text
            for is_fault, text in (
                (self.draining, "draining"),
                (self._packet.silent_s() > FRESH_S, "the packet process is silent"),
                (not self._has_key(), "no route key"),
                (self._is_loading(), "loading flows from redis"),
                (self.in_kernel and not self._is_attached(), "the program is not attached"),
                (self.in_kernel and not self._reaches_inside(), "no way to any transceiver"),
            )
            if is_fault
        ] + (self._nexthops.lost() if self._nexthops else [])

    def _has_key(self) -> bool:
        heartbeat = self._packet.heartbeat
        return heartbeat is not None and bool(heartbeat.keys)

    def _is_attached(self) -> bool:
        return {each.carrier for each in self._interfaces()} <= set(self._attached())

    def _interfaces(self) -> Sequence[Interface]:
        return self._kernel.interfaces if self._kernel else ()

    def _reaches_inside(self) -> bool:
        """Whether some allowed network is on an inner link, or behind a gateway that resolves."""
        if self._nexthops is None:
            return False
        inner = {each.port for each in self._interfaces() if each.role is not Role.OUTER}
        if any(entry.valid and entry.port in inner for entry in self._nexthops.entries.values()):
            return True
        ways = (
            self._nexthops.routes.find(str(network.network_address))
            for cluster in self.config.clusters
            for network in cluster.allow
        )
        return any(way is not None and way.port in inner for way in ways)

    def status(self) -> Record:
        faults = self.faults()
        states = {str(state): count for state, count in self._sweeper.last.states.items()}
        counts = {reason.label: n for reason, n in self.reasons().items() if n}
        return {
            "instance": self.config.instance,
            "running": True,
            "datapath": self.name,
            "uptime_s": round(time.monotonic() - self._started, 1),
            "packet_process_pid": self._packet.pid,
            "packet_process_silent_s": round(min(self._packet.silent_s(), 1e9), 1),
            "vips": [
                {"id": vip.id, "public": render(vip.public), "local": render(vip.local)}
                for vip in self.config.vips
            ],
            "interfaces": [
                {"name": each.name, "role": each.role} for each in self.config.interfaces
            ],
            "flows": {"new": 0, "confirmed": 0, **states, "max": self._datapath.flows.capacity},
            "ready": not faults,
            "not_ready": faults,
            "peers": self._peers.records(),
            "redis": self._cache.state if self._cache else "off",
            "reasons": counts,
        }

    def flows(self) -> Iterator[Record]:
        return self._records(self._datapath.flows.items())

    def flow(self, client: Address, vip: str | None) -> Record | None:
        """The flow of a client with one VIP (id or public address), or with any."""
        table = self._datapath.flows
        found = ((key, flow) for key in self._keys(client, vip) if (flow := table.get(key)))
        return next(self._records(found), None)

    async def delete(self, client: Address, vip: str | None) -> bool | None:
        """End a client's flows. False when there is none, None when the command did not go out.

        Returns when the deletion shows, or after a second.
        """
        table = self._datapath.flows
        keys = [key for key in self._keys(client, vip) if table.get(key)]
        for key in keys:
            if not self._packet.send(DeleteFlow(key.client, key.vip)):
                return None
        for _ in range(DELETE_LOOKS):
            if not any(table.get(key) for key in keys):
                break
            await asyncio.sleep(DELETE_S / DELETE_LOOKS)
        return bool(keys)

    def nexthops(self) -> list[Record]:
        entries = self._nexthops.entries if self._nexthops else {}
        names = {each.port: each.name for each in self._interfaces()}
        return [
            records.nexthop_record(index, entry, names) for index, entry in sorted(entries.items())
        ]

    def reasons(self) -> dict[Reason, int]:
        return self._datapath.reasons()

    def snapshot(self) -> Snapshot:
        heartbeat = self._packet.heartbeat
        entries = self._nexthops.entries.values() if self._nexthops else ()
        valid = sum(entry.valid for entry in entries)
        return Snapshot(
            instance=self.config.instance,
            datapath=self.name,
            ready=not self.faults(),
            uptime_s=time.monotonic() - self._started,
            heartbeat_age_s=self._packet.silent_s(),
            reasons=self.reasons(),
            flows=self._sweeper.last.flows,
            flows_max={4: self.config.max_flows, 6: self.config.max_flows_v6},
            map_memory=self._map_memory(),
            ended=self._sweeper.ended,
            received=heartbeat.received if heartbeat else 0,
            socket_drops=heartbeat.socket_drops if heartbeat else 0,
            channel_drops={
                "control": self._packet.dropped,
                "packet": heartbeat.channel_drops if heartbeat else 0,
            },
            nexthops={"valid": valid, "unresolved": len(entries) - valid},
            nexthops_failed=self._nexthops.failed() if self._nexthops else 0,
            nexthop_full=heartbeat.nexthop_full if heartbeat else 0,
            hints=heartbeat.hints if heartbeat else 0,
            displaced=heartbeat.displaced if heartbeat else 0,
            takeovers=heartbeat.takeovers if heartbeat else 0,
            replacements=self._replacements(),
            cache_state=self._cache.state if self._cache else None,
            cache_writes=self._cache.writes if self._cache else {},
            cache_lookups=self._cache.lookups if self._cache else {},
            cache_queued=self._cache.queued if self._cache else 0,
            peers={each.id: each.id in self._peers.health.live for each in self.config.peers},
            peer_changes=self._peers.changes,
            sweep_s=self._sweeper.last.took_s,
            sweep_age_s=time.monotonic() - (self._sweeper.last.finished or self._started),
        )

    def _map_memory(self) -> int:
        if not self.in_kernel:
            return 0
        shapes = maps.shapes(self.config.max_flows, self.config.max_flows_v6)
        return sum(shape.memory(os.cpu_count() or 1) for shape in shapes)

    def _keys(self, client: Address, vip: str | None) -> list[FlowKey]:
        return [
            FlowKey(client, id)
            for id, public in self._vips.items()
            if vip is None or vip in (str(id), public)
        ]

    def _records(self, flows: Iterable[tuple[FlowKey, Flow]]) -> Iterator[Record]:
        now, entries = stamp(), self._nexthops.entries if self._nexthops else {}
        for key, flow in flows:
            yield records.flow_record(
                key, flow, now=now, vips=self._vips, nexthops=entries, kernel=self.in_kernel
            )
