import dataclasses

from transceiver.dtls import Failure
from transceiver.lifecycle import PHASES, End, Timeline


def test_each_phase_has_its_place_in_the_timeline() -> None:
    assert [field.name for field in dataclasses.fields(Timeline)] == [f"{it}_ms" for it in PHASES]


def test_each_failure_of_dtls_is_an_end() -> None:
    assert all(End(failure) for failure in Failure)


def test_the_first_time_counts() -> None:
    timeline = Timeline()
    assert timeline.reached == "nothing"
    assert timeline.mark("ice", 0.0304567)
    assert not timeline.mark("ice", 1.0)
    assert timeline.ice_ms == 30.457
    assert timeline.reached == "ice"
