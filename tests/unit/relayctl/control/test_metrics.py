from prometheus_client.core import Sample
from prometheus_client.parser import text_string_to_metric_families

from relayctl.control.metrics import RelayCollector, Snapshot, exposition
from relayctl.flow import Expiry, State
from relayctl.reason import Reason

SNAPSHOT = Snapshot(
    instance="relay-t",
    datapath="xdp-native",
    ready=True,
    heartbeat_age_s=0.25,
    reasons={Reason.FORWARD: 7, Reason.SLOW_FORGED: 2},
    flows={State.NEW: 1, State.CONFIRMED: 3},
    flows_max=1024,
    ended={Expiry.CLIENT_SILENT: 5},
    received=20,
    socket_drops=4,
    channel_drops={"control": 1, "packet": 0},
    nexthops={"valid": 2, "unresolved": 1},
    nexthops_failed=1,
    nexthop_full=6,
    hints=3,
)


def samples(snapshot: Snapshot) -> dict[tuple[str, ...], float]:
    text = exposition(RelayCollector(lambda: snapshot)).decode()
    return {
        (sample.name.removeprefix("ferryline_relay_"), *_labels(sample)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _labels(sample: Sample) -> list[str]:
    return [label for _, label in sorted(sample.labels.items())]


def test_what_a_snapshot_becomes() -> None:
    found = samples(SNAPSHOT)
    expected = {
        ("info", "xdp-native", "relay-t"): 1,
        ("ready",): 1,
        ("heartbeat_age_seconds",): 0.25,
        ("packets_total", "forward"): 7,
        ("packets_total", "slow_forged"): 2,
        ("packets_total", "return"): 0,
        ("flows", "new"): 1,
        ("flows", "confirmed"): 3,
        ("flows_max",): 1024,
        ("flows_ended_total", "client_silent"): 5,
        ("flows_ended_total", "endpoint_silent"): 0,
        ("socket_received_total",): 20,
        ("socket_drops_total",): 4,
        ("channel_drops_total", "control"): 1,
        ("nexthops", "valid"): 2,
        ("nexthops", "unresolved"): 1,
        ("nexthops_failed",): 1,
        ("nexthop_full_total",): 6,
        ("hints",): 3,
    }
    assert {key: found.get(key) for key in expected} == expected


def test_every_reason_is_there_from_the_start() -> None:
    found = samples(Snapshot("relay-t", "socket"))
    labels = {key[1] for key in found if key[0] == "packets_total"}
    assert labels == {reason.label for reason in Reason}
