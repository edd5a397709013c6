import re
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from transceiver.admission import Admission, Refusal
from transceiver.counts import Counts
from transceiver.lifecycle import End, State
from transceiver.metrics import PREFIX, Metrics
from transceiver.tally import FAULTS, STATUSES

DOC = Path(__file__).parents[3] / "docs/metrics.md"


def test_shows_what_was_counted() -> None:
    registry, counts = CollectorRegistry(), Counts()
    statistics: dict[str, int] = {"recovered": 2, "late": 1, "fec": 1}
    shown = [
        {"state": State.CONNECTED, "statistics": statistics},
        {"state": State.CONNECTED, "statistics": statistics},
        {"state": State.AWAY, "statistics": {}},
    ]
    metrics = Metrics(registry, counts, lambda: shown, Admission(30), lambda share: share * 2)
    counts.uplink.update(recovered=3, silence_ms=20)
    counts.drop("not_spp")
    counts.ended["hangup"] += 2
    counts.refused["overloaded"] += 1
    counts.packets_up, counts.bytes_down, counts.moves, counts.lost = 5, 70, 1, 3
    counts.turns, counts.interruptions = 4, 1
    counts.responses["completed"] += 3
    counts.faults["backend_overrun"] += 1
    counts.answers.update([1, 1, 3])
    counts.answers_s = 0.5
    metrics.observe("ice", 0.03)
    lines = generate_latest(registry).decode().splitlines()
    name = "ferryline_transceiver"
    for line in (
        f'{name}_calls{{state="connected"}} 2.0',
        f'{name}_calls{{state="away"}} 1.0',
        f'{name}_calls{{state="new"}} 0.0',
        f"{name}_capacity 30.0",
        f"{name}_draining 0.0",
        f'{name}_lateness_seconds{{quantile="0.5"}} 1.0',
        f'{name}_lateness_seconds{{quantile="0.99"}} 1.98',
        f'{name}_uplink_total{{what="recovered"}} 7.0',
        f'{name}_uplink_total{{what="late"}} 2.0',
        f'{name}_uplink_total{{what="concealed"}} 0.0',
        f'{name}_uplink_total{{what="silence_ms"}} 20.0',
        f'{name}_datagrams_dropped_total{{reason="not_spp"}} 1.0',
        f'{name}_calls_ended_total{{reason="hangup"}} 2.0',
        f'{name}_calls_refused_total{{reason="overloaded"}} 1.0',
        f'{name}_rtp_packets_total{{direction="up"}} 5.0',
        f'{name}_rtp_payload_bytes_total{{direction="down"}} 70.0',
        f"{name}_path_moves_total 1.0",
        f"{name}_rtp_lost_total 3.0",
        f"{name}_turns_total 4.0",
        f"{name}_interruptions_total 1.0",
        f'{name}_responses_total{{status="completed"}} 3.0',
        f'{name}_errors_total{{code="backend_overrun"}} 1.0',
        f'{name}_answer_seconds_bucket{{le="0.05"}} 0.0',
        f'{name}_answer_seconds_bucket{{le="0.1"}} 2.0',
        f'{name}_answer_seconds_bucket{{le="+Inf"}} 3.0',
        f"{name}_answer_seconds_count 3.0",
        f"{name}_answer_seconds_sum 0.5",
        f'{name}_call_setup_seconds_count{{phase="ice"}} 1.0',
        f'{name}_call_setup_seconds_bucket{{le="0.05",phase="ice"}} 1.0',
        f'{name}_call_setup_seconds_count{{phase="first_audio"}} 0.0',
    ):
        assert line in lines
    assert not any('state="ended"' in line for line in lines)
    assert not any("fec" in line for line in lines)
    assert (
        generate_latest(registry).decode().count('what="recovered"} 7.0') == 1
    )  # asking adds none


def names(registry: CollectorRegistry) -> dict[str, tuple[str, ...]]:
    """Every metric's name as Prometheus shows it, without our prefix, and its labels."""
    found = {}
    for family in registry.collect():
        name = family.name.removeprefix(f"{PREFIX}_")
        labels = {key for sample in family.samples for key in sample.labels} - {"le"}
        found[f"{name}_total" if family.type == "counter" else name] = tuple(sorted(labels))
    return found


def test_the_document_has_every_metric_with_its_labels() -> None:
    registry, counts = CollectorRegistry(), Counts()
    Metrics(registry, counts, lambda: (), Admission(30), lambda share: 0.0)
    for totals in (
        *(counts.dropped, counts.ended, counts.refused, counts.responses),
        *(counts.faults, counts.registrations, counts.records, counts.resumes),
    ):
        totals["x"] = 1
    [chapter] = re.findall(r"^# What a transceiver.*?(?=^# |\Z)", DOC.read_text(), re.M | re.S)
    [table] = re.findall(r"^\| name \|.*?\n\n", chapter, re.M | re.S)
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.M)
    shown = {name: tuple(sorted(re.findall(r"`(\w+)`", labels))) for name, labels in rows}
    assert shown == names(registry)
    for reason in (*Refusal, *FAULTS, *STATUSES, *End):
        assert f"`{reason}`" in chapter
