"""Prometheus metrics, collected when asked for.

Nothing is counted here: a snapshot comes in, metric families go out. Program and packet process
share one set, so what a packet met reads the same whoever handled it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from relayctl.flow import Expiry, State
from relayctl.reason import Reason

FAMILIES = {4: "v4", 6: "v6"}  # labels by IP version
CACHE_STATES = "ok", "silent", "refusing writes"
CACHE_WRITES = "written", "refreshed", "refused", "dropped"
CACHE_LOOKUPS = "found", "hinted", "absent", "failed", "dropped"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The relay at one moment."""

    instance: str
    datapath: str
    ready: bool = False
    uptime_s: float = 0.0
    heartbeat_age_s: float = 0.0
    reasons: Mapping[Reason, int] = field(default_factory=dict)
    flows: Mapping[tuple[int, State], int] = field(default_factory=dict)  # by IP version, state
    flows_max: Mapping[int, int] = field(default_factory=dict)  # by IP version
    map_memory: int = 0  # bytes
    ended: Mapping[Expiry, int] = field(default_factory=dict)
    received: int = 0
    socket_drops: int = 0
    channel_drops: Mapping[str, int] = field(default_factory=dict)  # by sender
    nexthops: Mapping[str, int] = field(default_factory=dict)  # valid, unresolved
    nexthops_failed: int = 0
    nexthop_full: int = 0
    hints: int = 0
    displaced: int = 0
    takeovers: int = 0
    replacements: int = 0
    peers: Mapping[int, bool] = field(default_factory=dict)  # id → lives
    peer_changes: int = 0
    cache_state: str | None = None  # None: there is no Redis
    cache_writes: Mapping[str, int] = field(default_factory=dict)  # by what became of them
    cache_lookups: Mapping[str, int] = field(default_factory=dict)
    cache_queued: int = 0
    sweep_s: float = 0.0
    sweep_age_s: float = 0.0


class RelayCollector(Collector):
    """Turns a snapshot into metric families."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def describe(self) -> list[Metric]:
        """Nothing: a collector that describes itself is collected when it is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        now = self._snapshot()
        yield from _service(now)
        yield from _packets(now)
        yield from _tables(now)

        yield from _nexthops(now)
        yield from _peers(now)
        if now.cache_state is not None:
            yield from _cache(now)


def _service(now: Snapshot) -> Iterator[Metric]:
    identity = (now.instance, now.datapath)
    yield _gauges("info", "Which relay this is.", ("instance", "datapath"), {identity: 1})
    yield _gauge("ready", "1 while /readyz says yes.", now.ready)
    yield _gauge("uptime_seconds", "Seconds since the daemon started.", now.uptime_s)
    age = "Seconds since the packet process was last heard."
    yield _gauge("heartbeat_age_seconds", age, now.heartbeat_age_s)
    hung = "Packet processes that were silent, killed and started again."
    yield _counter("packet_process_replaced", hung, now.replacements)
    lost = "Messages between the two processes that found the pipe full."
    yield _counters("channel_drops", lost, "sender", now.channel_drops)


def _packets(now: Snapshot) -> Iterator[Metric]:
    fates = {reason.label: now.reasons.get(reason, 0) for reason in Reason}
    yield _counters(
        "packets",
        "Packets by what became of them, in the program and in the packet process.",
        "reason",
        fates,
    )
    yield _counter("socket_received", "Datagrams that the packet process read.", now.received)
    lost = "Datagrams that found a socket full or had a bad checksum."
    yield _counter("socket_drops", lost, now.socket_drops)


def _tables(now: Snapshot) -> Iterator[Metric]:
    flows = {
        (family, str(state)): now.flows.get((version, state), 0)
        for version, family in FAMILIES.items()
        for state in State
    }
    what = "Flows in the tables, by the family of their client."
    yield _gauges("flows", what, ("family", "state"), flows)
    room = {(family,): now.flows_max.get(version, 0) for version, family in FAMILIES.items()}
    yield _gauges("flows_max", "Flows that the tables hold.", ("family",), room)
    memory = "Kernel memory of the pinned maps, computed from their sizes; 0 without any."
    yield _gauge("map_memory_bytes", memory, now.map_memory)
    ended = {str(reason): now.ended.get(reason, 0) for reason in Expiry}
    yield _counters("flows_ended", "Flows that the sweep removed.", "reason", ended)
    displaced = "Flows that made room for another one of the same route token."
    yield _counter("flows_displaced", displaced, now.displaced)
    pending = "Flows that another endpoint's token asks for, while nobody proved the right to them."
    yield _gauge("takeovers_pending", pending, now.takeovers)
    yield _gauge("hints", "SSRCs that lead back to their flow.", now.hints)
    yield _gauge("sweep_seconds", "How long the last look at every flow took.", now.sweep_s)
    yield _gauge("sweep_age_seconds", "Seconds since it ended.", now.sweep_age_s)


def _nexthops(now: Snapshot) -> Iterator[Metric]:
    entries = {(state,): count for state, count in now.nexthops.items()}
    yield _gauges("nexthops", "Entries of the nexthop table.", ("state",), entries)
    failed = "Nexthops whose neighbour does not answer; its last MAC address stays in use."
    yield _gauge("nexthops_failed", failed, now.nexthops_failed)
    full = "Look-ups that found no free nexthop entry."
    yield _counter("nexthop_full", full, now.nexthop_full)


def _peers(now: Snapshot) -> Iterator[Metric]:
    live = {(str(id),): float(lives) for id, lives in now.peers.items()}
    yield _gauges("peer_live", "1 while a peer relay answers /readyz.", ("peer",), live)
    yield _counter("peer_changes", "Peer relays that went out or came back.", now.peer_changes)


def _cache(now: Snapshot) -> Iterator[Metric]:
    states = {(state,): float(state == now.cache_state) for state in CACHE_STATES}
    yield _gauges("cache_state", "1 for the state that Redis is in.", ("state",), states)
    writes = {fate: now.cache_writes.get(fate, 0) for fate in CACHE_WRITES}
    yield _counters("cache_writes", "Flows for Redis, by what became of them.", "fate", writes)
    lookups = {result: now.cache_lookups.get(result, 0) for result in CACHE_LOOKUPS}
    what = "Clients without a flow that Redis was asked for, by the answer."
    yield _counters("cache_lookups", what, "result", lookups)
    yield _gauge("cache_queued", "Flows that wait to be written to Redis.", now.cache_queued)


def exposition(collector: Collector) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry)


_PREFIX = "ferryline_relay_"


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, help_text, value=float(value))


def _gauges(
    name: str, help_text: str, labels: tuple[str, ...], values: Mapping[Any, float]
) -> Metric:
    """`values` by tuples of label values."""
    family = GaugeMetricFamily(_PREFIX + name, help_text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _counter(name: str, help_text: str, value: int) -> Metric:
    return CounterMetricFamily(_PREFIX + name, help_text, value=value)


def _counters(name: str, help_text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, help_text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family
