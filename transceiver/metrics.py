"""Prometheus metrics of one process, in a registry that comes in.

Totals are plain integers of the packet path, read when Prometheus asks.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from transceiver.admission import Admission
from transceiver.counts import Counts
from transceiver.lifecycle import PHASES, State
from transceiver.tally import ANSWER_BUCKETS

PREFIX = "ferryline_transceiver"
SETUP_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # seconds
UPLINK = ("late", "duplicates", "recovered", "concealed", "undecodable", "resyncs", "silence_ms")


class Metrics(Collector):
    """`shown` gives each live call as `Call.describe` does, `lateness` the seconds that a share of
    the deadlines did not exceed."""

    def __init__(
        self,
        registry: CollectorRegistry,
        counts: Counts,
        shown: Callable[[], Iterable[Mapping[str, Any]]],
        admission: Admission,
        lateness: Callable[[float], float],
    ) -> None:
        self._counts = counts
        self._shown = shown
        self._admission = admission
        self._lateness = lateness
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
        counts, shown = self._counts, list(self._shown())
        yield _calls(call["state"] for call in shown)
        yield GaugeMetricFamily(
            f"{PREFIX}_capacity", "Calls that may be live at once.", self._admission.capacity
        )
        yield GaugeMetricFamily(
            f"{PREFIX}_draining", "1 while no new calls are taken.", self._admission.draining
        )
        yield self._late()
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
        yield _uplink(counts.uplink.copy(), (call["statistics"] for call in shown))
        yield CounterMetricFamily(
            f"{PREFIX}_path_moves", "Calls that moved to another path.", counts.moves
        )
        yield _by("result", "registrations", "Writings of our key in Redis.", counts.registrations)
        yield _by("result", "resume_records", "Records of calls in Redis.", counts.records)
        yield _by("result", "resumes", "Calls to be carried on here.", counts.resumes)
        yield from _conversations(counts)

    def _late(self) -> Metric:
        family = GaugeMetricFamily(
            f"{PREFIX}_lateness_seconds",
            "How late work was done, over the last 5 s.",
            labels=["quantile"],
        )
        for share in (0.5, 0.99):
            family.add_metric([str(share)], self._lateness(share))
        return family


def _calls(states: Iterable[State]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}_calls", "Live calls by state.", labels=["state"])
    totals = Counter(states)
    for state in State:
        if state is not State.ENDED:
            family.add_metric([state], totals[state])
    return family


def _uplink(totals: Counter[str], live: Iterable[Mapping[str, int]]) -> Metric:
    """What became of the clients' audio, of all calls."""
    family = CounterMetricFamily(
        f"{PREFIX}_uplink", "What the repair of the clients' audio did.", labels=["what"]
    )
    for statistics in live:
        totals.update({what: statistics.get(what, 0) for what in UPLINK})
    for what in UPLINK:
        family.add_metric([what], totals[what])
    return family


def _conversations(counts: Counts) -> Iterator[Metric]:
    yield CounterMetricFamily(f"{PREFIX}_turns", "Turns of clients.", counts.turns)
    yield CounterMetricFamily(
        f"{PREFIX}_interruptions", "Replies that were silenced.", counts.interruptions
    )
    yield _by("status", "responses", "Responses that are over.", counts.responses)
    yield _by("code", "errors", "Errors that clients were told.", counts.faults)
    family = HistogramMetricFamily(
        f"{PREFIX}_answer_seconds",
        "From the end of a client's turn to the first sound of its answer.",
    )
    seen = itertools.accumulate(counts.answers[n] for n in range(len(ANSWER_BUCKETS)))
    bounds = [str(bound).replace("inf", "+Inf") for bound in ANSWER_BUCKETS]
    family.add_metric([], list(zip(bounds, seen, strict=True)), counts.answers_s)
    yield family


def _by_reason(name: str, text: str, totals: Counter[str]) -> Metric:
    return _by("reason", name, text, totals)


def _by(label: str, name: str, text: str, totals: Counter[str]) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=[label])
    for value, total in totals.items():
        family.add_metric([value], total)
    return family


def _by_direction(name: str, text: str, up: int, down: int) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["direction"])
    family.add_metric(["up"], up)
    family.add_metric(["down"], down)
    return family
