import re
from pathlib import Path

from prometheus_client.core import Sample
from prometheus_client.parser import text_string_to_metric_families

from relayctl.control.metrics import RelayCollector, Snapshot, exposition
from relayctl.flow import Expiry, State
from relayctl.reason import Reason

DOC = Path(__file__).parents[4] / "docs/metrics.md"
SNAPSHOT = Snapshot(
    instance="relay-t",
    datapath="xdp-native",
    ready=True,
    heartbeat_age_s=0.25,
    reasons={Reason.FORWARD: 7, Reason.SLOW_FORGED: 2},
    flows={(4, State.NEW): 1, (4, State.CONFIRMED): 3, (6, State.NEW): 2},
    flows_max={4: 1024, 6: 512},
    map_memory=4096,
    ended={Expiry.CLIENT_SILENT: 5},
    received=20,
    socket_drops=4,
    channel_drops={"control": 1, "packet": 0},
    nexthops={"valid": 2, "unresolved": 1},
    nexthops_failed=1,
    nexthop_full=6,
    hints=3,
    displaced=8,
    takeovers=9,
    replacements=2,
    sweep_s=0.5,
    sweep_age_s=1.5,
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
        ("flows", "v4", "new"): 1,
        ("flows", "v4", "confirmed"): 3,
        ("flows", "v6", "new"): 2,
        ("flows", "v6", "confirmed"): 0,
        ("flows_max", "v4"): 1024,
        ("flows_max", "v6"): 512,
        ("map_memory_bytes",): 4096,
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
        ("flows_displaced_total",): 8,
        ("takeovers_pending",): 9,
        ("packet_process_replaced_total",): 2,
        ("sweep_seconds",): 0.5,
        ("sweep_age_seconds",): 1.5,
    }
    assert {key: found.get(key) for key in expected} == expected


def test_every_reason_is_there_from_the_start() -> None:
    found = samples(Snapshot("relay-t", "socket"))
    labels = {key[1] for key in found if key[0] == "packets_total"}
    assert labels == {reason.label for reason in Reason}


def test_every_metric_is_documented() -> None:
    families = RelayCollector(lambda: SNAPSHOT).collect()
    names = {
        family.name.removeprefix("ferryline_relay_") + "_total" * (family.type == "counter")
        for family in families
    }
    documented = set(re.findall(r"`(\w+)`", _tables(DOC.read_text())))
    assert names - documented == set()


def test_documented_reasons_exist() -> None:
    relay, _, _ = DOC.read_text().partition("# What a transceiver")
    named = set(re.findall(r"`((?:drop|punt|slow)_\w+)`", relay))
    assert named <= {reason.label for reason in Reason}


def _tables(text: str) -> str:
    """First columns."""
    return "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("|"))
