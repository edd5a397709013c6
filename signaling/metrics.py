"""What signaling counts. The registry comes in, so tests and processes do not share figures."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

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
        self.transceivers_ready = Gauge(
            "ferryline_signaling_transceivers_ready",
            "Transceivers that take calls.",
            registry=registry,
        )
