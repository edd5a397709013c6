"""What an uplink makes of a minute of bad network: an unbroken line, the same sound, in time."""

import numpy as np
import pytest

from tests.audio import chirp
from tests.audio.compressed import Journey, travel
from tests.audio.score import FIRST_TIMESTAMP, Note, doubled, drifting, encode, late, paused
from tests.lab import ear, speech
from tests.lab.ear import Row
from tests.lab.frame import Kind as FrameKind
from tests.lab.impairment import Rule
from transceiver.audio.uplink import Kind

RATE = 24000
RTP = frozenset({FrameKind.RTP})
CODER = round(0.0065 * speech.RATE)  # samples


@pytest.fixture(scope="module")
def minute() -> list[Note]:
    return encode(speech.spoken(60), fec=True)


@pytest.fixture(scope="module")
def talk(minute: list[Note]) -> list[Note]:
    """The first fifteen seconds."""
    return minute[:750]


def at_48k(journey: Journey) -> Row:
    return np.repeat(journey.samples(), speech.RATE // RATE)


def waits_ms(journey: Journey) -> Row:
    """From the sending of each sound's packet, by a true clock, until it was given."""
    ticks = np.array([each.sound.timestamp - FIRST_TIMESTAMP for each in journey.given])
    return 1e3 * (np.array([each.at for each in journey.given]) - ticks / 48000)


@pytest.mark.parametrize("ppm", [-200, 200])
def test_a_drifting_clock_neither_grows_nor_loses(minute: list[Note], ppm: int) -> None:
    """200 millionths are 12 ms in a minute; the line is the client's own, and keeps all of it."""
    journey = travel(drifting(minute, ppm))
    assert journey.breaks() == []
    assert journey.seconds() == pytest.approx(60)
    assert journey.seconds(Kind.DECODED) == pytest.approx(60)
    assert waits_ms(journey)[-1] == pytest.approx(-0.06 * ppm, abs=0.1)  # not our buffer's
    assert len(journey.given) == 3000


def test_overtaken_by_three_each_is_given_once_and_in_order(talk: list[Note]) -> None:
    behind = set(range(10, 750, 25))
    straight, crooked = travel(talk), travel(late(talk, behind, 0.0605))
    assert crooked.breaks() == []
    assert crooked.seconds() == pytest.approx(15)
    missed = crooked.uplink.late
    assert missed <= 5, "the wait follows the reordering"
    assert crooked.seconds(Kind.DECODED) >= 15 - 0.02 * missed - 1e-6
    assert ear.correlate(straight.samples(), crooked.samples(), RATE).min > 0.9
    assert waits_ms(crooked).max() < 61


def test_copies_are_given_once(talk: list[Note]) -> None:
    twice = doubled(doubled(talk, range(0, 750, 3)), range(0, 750, 7), 0.05)
    straight, again = travel(talk), travel(twice)
    assert again.uplink.duplicates == len(twice) - len(talk)
    assert (straight.samples() == again.samples()).all()
    assert (waits_ms(straight) == waits_ms(again)).all()


@pytest.mark.parametrize(("start_s", "end_s"), [(2.0, 2.4), (2.0, 5.0), (2.0, 10.0)])
def test_after_a_pause_the_time_line_is_the_wall_clock(start_s: float, end_s: float) -> None:
    """DTX and mute: timestamps jump, sequence numbers do not."""
    signal = chirp.chirps(12)
    journey = travel(paused(encode(signal.samples), start_s, end_s))
    assert journey.breaks() == []
    assert journey.seconds() == pytest.approx(12)
    assert journey.seconds(Kind.SILENCE) == pytest.approx(end_s - start_s)
    assert journey.uplink.concealed == journey.uplink.recovered == 0
    found = chirp.delays(signal, at_48k(journey))
    heard = {each.at for each in found}
    margin = 0.1 * speech.RATE
    for at in signal.starts:
        if at < start_s * speech.RATE - margin or at > end_s * speech.RATE + margin:
            assert at in heard
    assert all(abs(each.samples - CODER) < 24 for each in found)


@pytest.mark.parametrize("frame_ms", [10, 20, 40, 60])
def test_packets_of_any_length_survive_loss_and_jitter(frame_ms: int) -> None:
    signal = chirp.chirps(10)
    notes = encode(signal.samples, frame_ms=frame_ms, fec=True)
    rule = Rule(kinds=RTP, delay_s=0.03, jitter_s=0.03, drop=0.05, duplicate=0.05)
    journey = travel(notes, rule)
    assert journey.breaks() == []
    assert journey.seconds() == pytest.approx(len(notes) * frame_ms / 1000)
    found = chirp.delays(signal, at_48k(journey))
    assert len(found) >= 0.8 * len(signal.starts)
    assert all(abs(each.samples - CODER) < 24 for each in found)


def test_loss_jitter_and_reordering_is_the_same_talk(talk: list[Note]) -> None:
    rule = Rule(kinds=RTP, delay_s=0.03, jitter_s=0.03, drop=0.05, in_order=False)
    straight, harmed = travel(talk), travel(talk, rule)
    assert harmed.breaks() == []
    assert harmed.seconds() == pytest.approx(15)
    found = ear.correlate(straight.samples(), harmed.samples(), RATE)
    assert found.median > 0.9
    assert found.lag_drift_ms == 0
    assert np.percentile(waits_ms(harmed), 95) < 100


def test_the_judgement_sees_a_line_that_breaks(talk: list[Note]) -> None:
    journey = travel(talk[:100])
    given = list(journey.given)
    del given[50]
    assert Journey(journey.uplink, given).breaks() == [960]
    given.insert(50, given[50])
    assert Journey(journey.uplink, given).breaks() == [960, -960]
