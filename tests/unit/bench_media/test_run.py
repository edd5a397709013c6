import pytest

from tests.bench_media import run
from tests.bench_media.effort import FULL, QUICK

TARGETS = {
    *("echo_calls_vs_stock", "mirror_calls_vs_stock"),
    *("echo_calls_per_core", "mirror_calls_per_core"),
    *("memory_per_call_vs_stock", "growth_over_churn"),
    *("set_ups_per_second_and_core", "cpu_per_set_up_vs_stock"),
    *("at_once_connected", "at_once_slowest"),
    *("lost_packet_repaired_after", "lost_packet_added_to_later"),
    *("loss_and_jitter_delay_p95", "loss_and_jitter_repair_error", "loss_and_jitter_fec_error"),
    *("wire_to_wire_p95", "long_talk_time_error"),
    *("resampling_chunked_to_whole", "resampling_group_delay", "resampling_length_error"),
    *("takeovers", "takeover_victim_lost", "takeover_victim_moved"),
    *("reload_rebound", "reload_old_calls_left"),
    *("abandoned_offers_left", "dead_clients_left", "closed_calls_left"),
}


def test_every_target_belongs_to_one_measurement() -> None:
    names = [target.name for each in run.catalogue(FULL) for target in each.targets]
    assert len(names) == len(set(names))
    assert set(names) == TARGETS


def test_a_ratio_with_a_target_rests_on_three_rounds_or_more() -> None:
    assert FULL.rounds >= 3 > QUICK.rounds


def test_an_unknown_name_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.SUITE.main(["--only", "nonsense"]) == 2
    assert "no measurement 'nonsense'" in capsys.readouterr().out
