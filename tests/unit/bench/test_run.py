import pytest

from tests.bench import run
from tests.bench.effort import FULL, QUICK

TARGETS = {
    *("spp_vs_bare", "transparent_vs_bare", "mixes_vs_bare"),
    *("hit_ns", "hit_256k_ns", "hit_256k_vs_lookup"),
    *("million_vs_thousand", "bytes_per_flow"),
    *("latency_p50_vs_bare", "latency_p99_vs_bare"),
    *("rate_vs_go", "cpu_vs_go", "rate_vs_nat_100", "rate_vs_nat_10k"),
    *("new_calls", "burst_lost"),
}


def test_every_target_belongs_to_one_measurement() -> None:
    names = [target.name for each in run.catalogue(FULL) for target in each.targets]
    assert len(names) == len(set(names))
    assert set(names) == TARGETS


def test_a_ratio_with_a_target_rests_on_five_pairs_or_more() -> None:
    assert FULL.pairs >= 5 > QUICK.pairs


def test_an_unknown_name_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--only", "nonsense"]) == 2
    assert "no measurement 'nonsense'" in capsys.readouterr().out
