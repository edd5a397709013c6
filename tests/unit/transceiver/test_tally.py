import pytest

from transceiver.counts import Counts
from transceiver.tally import ANSWER_BUCKETS, Tally


class Rig:
    def __init__(self) -> None:
        self.now = 10.0
        self.counts = Counts()
        self.tally = Tally(self.counts, lambda: self.now)

    def note(self, kind: str, after: float = 0.0, **fields: object) -> None:
        self.now += after
        self.tally.note({"type": kind, **fields})


def test_counts_turns_responses_and_interruptions() -> None:
    rig = Rig()
    for status in ("completed", "cancelled", "completed"):
        rig.note("input_audio_buffer.committed")
        rig.note("response.done", response={"status": status})
    rig.note("output_audio_buffer.cleared")
    assert (rig.counts.turns, rig.counts.interruptions) == (3, 1)
    assert rig.counts.responses == {"completed": 2, "cancelled": 1}


@pytest.mark.parametrize("code", ["backend_unavailable", "backend_reconnected", "other"])
def test_errors_have_a_closed_set_of_codes(code: str) -> None:
    rig = Rig()
    told = "whatever_a_server_says" if code == "other" else code
    rig.note("error", error={"code": told})
    assert rig.counts.faults == {code: 1}


@pytest.mark.parametrize(
    "fields", [{}, {"response": 5, "error": 5}, {"response": {"status": []}, "error": {}}]
)
def test_odd_events_are_counted_too(fields: dict[str, object]) -> None:
    rig = Rig()
    for kind in ("response.done", "error"):
        rig.tally.note({"type": kind, **fields})
    rig.tally.note({})
    assert rig.counts.responses == rig.counts.faults == {"other": 1}


def test_the_time_from_a_turn_to_the_first_sound_of_its_answer() -> None:
    rig = Rig()
    rig.note("input_audio_buffer.speech_stopped")
    rig.note("output_audio_buffer.started", after=0.25)
    rig.note("output_audio_buffer.started", after=5)  # answers nothing
    rig.note("input_audio_buffer.speech_stopped")
    rig.note("input_audio_buffer.speech_started", after=0.1)  # it was a pause
    rig.note("output_audio_buffer.started", after=1)
    rig.note("input_audio_buffer.speech_stopped")
    rig.note("output_audio_buffer.started", after=99)
    buckets = {ANSWER_BUCKETS[n]: total for n, total in rig.counts.answers.items()}
    assert buckets == {0.3: 1, float("inf"): 1}
    assert rig.counts.answers_s == pytest.approx(99.25)
