"""The short form of the measurement."""

from tests.bench_media import reload


def test_a_page_loaded_anew_takes_its_address() -> None:
    assert reload.measure(6).values == {"reload_rebound": 6, "reload_old_calls_left": 0}
