import os
import time

from tests.bench.rates import Pairs, run_time_ns


def test_the_ratio_is_the_median_of_the_pairs_not_the_ratio_of_medians() -> None:
    pairs = Pairs([10.0, 20.0, 90.0], [10.0, 10.0, 100.0])
    assert pairs.ratio == 1.0
    assert pairs.best == 90.0


def test_run_time_grows_with_work_and_not_with_sleep() -> None:
    before = run_time_ns([os.getpid()])
    deadline = time.process_time() + 0.05
    while time.process_time() < deadline:
        pass
    worked = run_time_ns([os.getpid()])
    time.sleep(0.05)
    slept = run_time_ns([os.getpid()])
    assert worked - before >= 40e6
    assert slept - worked < 40e6
