"""What signaling counts. The registry comes in, so tests and processes do not share figures."""

import functools

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from signaling.fleet.steering import Placement

MAX_LABELLED = 1024  # what is found again quickly, of each metric
SETUP_BUCKETS_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """Counters by a request's face and status, the time to an answer, transceivers at hand."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.requests = Counter(
            "ferryline_signaling_requests",
            "HTTP requests by face and status.",
            ["face", "status"],
            registry=registry,
        )
        self.setup_seconds = Histogram(
            "ferryline_signaling_setup_seconds",
            "From an offer's last byte to its answer, calls that were begun.",
            ["face"],
            buckets=SETUP_BUCKETS_S,
            registry=registry,
        )
        self.offers_under_way = Gauge(
            "ferryline_signaling_offers_under_way",
            "Offers that wait for their answer; 503 `overloaded` is the answer to one too many.",
            registry=registry,
        )
        self.transceivers_ready = Gauge(
            "ferryline_signaling_transceivers_ready",
            "Transceivers that take calls.",
            registry=registry,
        )
        self.ingresses_down = Gauge(
            "ferryline_signaling_ingresses_down",
            "Ingresses that clients are not sent to while there is another one.",
            registry=registry,
        )
        self.steered = Counter(
            "ferryline_signaling_steered",
            "Calls that were begun, by where they went and why there.",
            ["ingress", "cluster", "reason"],
            registry=registry,
        )
        self.location_ignored = Counter(
            "ferryline_signaling_location_ignored",
            "Places of clients that were not to be understood, by who told them.",
            ["source"],
            registry=registry,
        )
        self.registry_ignored = Counter(
            "ferryline_signaling_registry_ignored",
            "Entries of Redis under `transceiver:` that were of no use, by why.",
            ["reason"],
            registry=registry,
        )
        self.registry_silent = Gauge(
            "ferryline_signaling_registry_silent",
            "1 while Redis does not answer and the last list stands.",
            registry=registry,
        )

        # looking a child up costs more than counting
        remember = functools.lru_cache(MAX_LABELLED)
        self.requests_of = remember(self.requests.labels)
        self.setup_seconds_of = remember(self.setup_seconds.labels)
        self._steered_of = remember(self.steered.labels)

    def count_placed(self, placement: Placement) -> None:
        """A call was begun there."""
        cluster = str(placement.transceiver.cluster)
        self._steered_of(placement.ingress.name, cluster, placement.reason).inc()
