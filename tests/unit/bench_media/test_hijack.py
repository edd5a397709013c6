"""The short form of the measurement."""

from tests.bench_media import hijack


def test_a_thief_in_the_same_process_takes_nothing() -> None:
    values = hijack.measure(24).values
    assert all(target.met(values[target.name]) for target in hijack.TARGETS)
    assert set(values) == {target.name for target in hijack.TARGETS}
