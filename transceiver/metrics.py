"""Prometheus metrics of one process, in a registry that comes in.

Totals are plain integers of the packet path, read when Prometheus asks.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from transceiver.counts import Counts
from transceiver.lifecycle import PHASES, State

PREFIX = "ferryline_transceiver"
SETUP_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # seconds


class Metrics(Collector):
    """`states` gives the state of each live call, `capacity` is that of the process."""

    def __init__(
        self,
        registry: CollectorRegistry,
        counts: Counts,
        states: Callable[[], Iterable[State]],
        capacity: int,
    ) -> None:
        self._counts = counts
        self._states = states
        self._capacity = capacity
        self._setup = Histogram(
            f"{PREFIX}_call_setup_seconds",
            "From the offer's arrival to each step of the set-up.",
            ["phase"],
            buckets=SETUP_BUCKETS,
            registry=registry,
        )
        for phase in PHASES:
            self._setup.labels(phase)
        registry.register(self)

    def observe(self, phase: str, seconds: float) -> None:
        """A call has done a step of its set-up."""
        self._setup.labels(phase).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        counts = self._counts
        yield self._calls()
        yield GaugeMetricFamily(
            f"{PREFIX}_capacity", "Calls that may be live at once.", self._capacity
        )
        yield _by_reason("calls_ended", "Calls that ended.", counts.ended)
        yield _by_reason("calls_refused", "Offers that were turned away.", counts.refused)
        yield _by_reason("datagrams_dropped", "Datagrams that came to nothing.", counts.dropped)
        yield _by_direction(
            "rtp_packets", "Authentic RTP packets.", counts.packets_up, counts.packets_down
        )
        yield _by_direction(
            "rtp_payload_bytes", "Bytes of RTP payload.", counts.bytes_up, counts.bytes_down
        )
        yield CounterMetricFamily(
            f"{PREFIX}_rtp_lost", "RTP packets of clients that never came.", counts.lost
        )
        yield CounterMetricFamily(
            f"{PREFIX}_path_moves", "Calls that moved to another path.", counts.moves
        )

    def _calls(self) -> Metric:
        family = GaugeMetricFamily(f"{PREFIX}_calls", "Live calls by state.", labels=["state"])
        states = Counter(self._states())
        for state in State:
            if state is not State.ENDED:
                family.add_metric([state], states[state])
        return family


def _by_reason(name: str, text: str, totals: Counter[str]) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["reason"])
    for reason, total in totals.items():
        family.add_metric([reason], total)
    return family


def _by_direction(name: str, text: str, up: int, down: int) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["direction"])
    family.add_metric(["up"], up)
    family.add_metric(["down"], down)
    return family
