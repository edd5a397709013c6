from prometheus_client import CollectorRegistry, generate_latest

from transceiver.counts import Counts
from transceiver.lifecycle import State
from transceiver.metrics import Metrics


def test_shows_what_was_counted() -> None:
    registry, counts = CollectorRegistry(), Counts()
    states = [State.CONNECTED, State.CONNECTED, State.AWAY]
    metrics = Metrics(registry, counts, lambda: states, capacity=30)
    counts.drop("not_spp")
    counts.ended["hangup"] += 2
    counts.refused["overloaded"] += 1
    counts.packets_up, counts.bytes_down, counts.moves, counts.lost = 5, 70, 1, 3
    metrics.observe("ice", 0.03)
    lines = generate_latest(registry).decode().splitlines()
    name = "ferryline_transceiver"
    for line in (
        f'{name}_calls{{state="connected"}} 2.0',
        f'{name}_calls{{state="away"}} 1.0',
        f'{name}_calls{{state="new"}} 0.0',
        f"{name}_capacity 30.0",
        f'{name}_datagrams_dropped_total{{reason="not_spp"}} 1.0',
        f'{name}_calls_ended_total{{reason="hangup"}} 2.0',
        f'{name}_calls_refused_total{{reason="overloaded"}} 1.0',
        f'{name}_rtp_packets_total{{direction="up"}} 5.0',
        f'{name}_rtp_payload_bytes_total{{direction="down"}} 70.0',
        f"{name}_path_moves_total 1.0",
        f"{name}_rtp_lost_total 3.0",
        f'{name}_call_setup_seconds_count{{phase="ice"}} 1.0',
        f'{name}_call_setup_seconds_bucket{{le="0.05",phase="ice"}} 1.0',
        f'{name}_call_setup_seconds_count{{phase="first_audio"}} 0.0',
    ):
        assert line in lines
    assert not any('state="ended"' in line for line in lines)
