"""The figures of a lost packet see what they are for: late repairs, missing ones, later delay."""

from collections.abc import Callable

import pytest

from tests.audio.chirp import Chirps, chirps
from tests.audio.listening import Arrival
from tests.audio.lost_packet import added_to_later_ms, choose, repaired_after_ms
from tests.audio.score import carries_fec, encode
from tests.audio.take import Take
from tests.clients.opus_source import FRAME
from tests.figures.measurement import MeasurementError
from tests.lab import speech

LOST = [100, 180]


@pytest.fixture(scope="module")
def signal() -> Chirps:
    return chirps(5)


def take(signal: Chirps, way: Callable[[int], float | None]) -> Take:
    score = encode(signal.samples)
    came = [
        Arrival(note.at + each, *note[1:4])
        for number, note in enumerate(score)
        if (each := way(number)) is not None
    ]
    return Take("rtc_x", score, [note.at for note in score], came)


def test_packets_are_chosen_where_their_loss_is_heard_and_a_copy_follows() -> None:
    talk = speech.spoken(8)
    notes = encode(talk, fec=True)
    chosen = choose(notes, talk)
    assert len(chosen) >= 3
    for number in chosen:
        assert carries_fec(notes[number + 1].payload)
        assert abs(talk[number * FRAME : (number + 1) * FRAME]).max() > 0.05
    with pytest.raises(MeasurementError, match="no packet"):
        choose(encode(0 * talk), 0 * talk)


def test_a_repair_is_as_late_as_it_came(signal: Chirps) -> None:
    late = take(signal, lambda number: 0.053 if number in LOST else 0.003)
    assert repaired_after_ms(late, LOST) == pytest.approx([50, 50], abs=0.1)


def test_no_repair_is_no_figure(signal: Chirps) -> None:
    with pytest.raises(MeasurementError, match="never repaired"):
        repaired_after_ms(take(signal, lambda n: None if n in LOST else 0.003), LOST)


@pytest.mark.parametrize("step_s", [0.0, 0.002, 0.06])
def test_what_a_loss_adds_to_later_packets(signal: Chirps, step_s: float) -> None:
    grown = take(signal, lambda number: 0.003 + step_s * (number > LOST[0]))
    assert added_to_later_ms(grown, signal, LOST) == pytest.approx(1e3 * step_s, abs=0.2)


def test_the_repair_itself_and_busy_moments_are_not_what_is_added(signal: Chirps) -> None:
    repairing = {number + n for number in LOST for n in range(4)}
    waits = take(
        signal, lambda n: 0.043 if n in repairing else 0.003 + 0.01 * (n % 3 == 0 and n > 120)
    )
    assert added_to_later_ms(waits, signal, LOST) == pytest.approx(0, abs=0.2)
