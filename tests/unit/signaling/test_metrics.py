from prometheus_client import CollectorRegistry, generate_latest

from signaling.metrics import Metrics


def test_two_instances_share_nothing() -> None:
    one, other = Metrics(CollectorRegistry()), Metrics(CollectorRegistry())
    one.requests.labels("openai", "201").inc()
    text = generate_latest(one.registry).decode()
    assert 'ferryline_signaling_requests_total{face="openai",status="201"} 1.0' in text
    assert "openai" not in generate_latest(other.registry).decode()
