import math
from collections.abc import Iterable

import numpy as np
import pytest

from tests.conversations.clips import clips
from transceiver.turns.detector import Detector, Started, Stopped, Turn
from transceiver.turns.settings import Limits, Sensitivity, Settings
from transceiver.turns.vad import make

FRAME = 512
FRAME_MS = 32
NOISE = np.random.default_rng(3)


class Marked:
    """Takes a frame's first sample for its probability in thousandths."""

    frame = FRAME

    def __init__(self) -> None:
        self.asked = 0

    def probability(self, frame: bytes) -> float:
        self.asked += 1
        return int(np.frombuffer(frame, np.int16)[0]) / 1000

    def reset(self) -> None:
        raise AssertionError("the model's state outlives a turn")


class Line:
    """Sound of given probabilities, one frame each, on its own clock."""

    def __init__(self, detector: Detector, playing: bool = False) -> None:
        self.detector = detector
        self.playing = playing
        self.now = 50.0

    def frames(self, *probabilities: float) -> list[Turn]:
        turns: list[Turn] = []
        for each in probabilities:
            frame = np.full(FRAME, 7, np.int16)
            frame[0] = round(each * 1000)
            self.now += FRAME_MS / 1000
            turns += self.detector.hear(frame.tobytes(), self.playing, self.now)
        return turns

    def speech(self, frames: int) -> list[Turn]:
        return self.frames(*[0.9] * frames)

    def room(self, frames: int) -> list[Turn]:
        return self.frames(*[0.1] * frames)


@pytest.fixture
def detector() -> Detector:
    return Detector(Marked())


@pytest.fixture
def line(detector: Detector) -> Line:
    return Line(detector)


def test_two_frames_of_speech_begin_a_turn_with_its_prefix(line: Line) -> None:
    line.room(20)
    assert line.speech(1) == []
    assert line.speech(1) == [Started(20 * FRAME_MS - 300)]
    assert line.detector.speaking


def test_no_prefix_reaches_back_behind_the_call(line: Line) -> None:
    assert line.speech(2) == [Started(0)]


def test_silence_ends_it_and_the_end_holds_the_silence(line: Line) -> None:
    line.speech(10)
    assert line.room(15) == []
    assert line.room(1) == [Stopped(26 * FRAME_MS, 10 * FRAME_MS)]
    assert not line.detector.speaking


def test_silence_is_counted_anew_after_each_word(line: Line) -> None:
    line.speech(10)
    for _ in range(5):
        assert line.room(15) == []
        assert line.speech(1) == []
    assert line.room(16) == [Stopped(106 * FRAME_MS, 90 * FRAME_MS)]


def test_speech_goes_on_until_it_falls_well_below_the_threshold(line: Line) -> None:
    assert line.frames(0.49, 0.49, 0.49) == []
    assert line.frames(0.5, 0.36) == [Started(0)]
    line.frames(*[0.36] * 40)
    assert line.frames(*[0.34] * 16) != []


def test_after_a_quiet_frame_only_the_threshold_itself_is_speech(line: Line) -> None:
    line.speech(5)
    line.room(1)
    assert line.frames(*[0.45] * 15) != []


def test_one_frame_alone_is_no_turn(line: Line) -> None:
    for _ in range(10):
        assert line.speech(1) + line.room(1) == []


def test_suspects_from_the_first_frame_on_until_it_is_told_or_over(line: Line) -> None:
    line.room(20)
    assert not line.detector.suspects
    line.speech(1)
    assert line.detector.suspects
    line.room(1)
    assert not line.detector.suspects
    line.speech(1)
    assert line.detector.suspects
    line.speech(1)
    assert not line.detector.suspects


def test_suspects_as_soon_as_the_room_grows_loud(detector: Detector) -> None:
    quiet, loud = (NOISE.normal(0, rms, 320).astype(np.int16).tobytes() for rms in (30, 300))
    for _ in range(17):
        detector.hear(quiet, False, 1.0)
    assert not detector.suspects
    detector.hear(loud, False, 1.0)
    assert detector.suspects
    for _ in range(8):
        detector.hear(loud, False, 1.0)
    assert not detector.suspects


def test_turns_are_the_same_in_pieces_of_any_size() -> None:
    sound = clips()[1].samples.tobytes()
    told = []
    for size in (320, 111, 512, 5000, len(sound) // 2):
        detector = Detector(make("webrtc"))
        told.append(
            [
                turn
                for at in range(0, len(sound), size * 2)
                for turn in detector.hear(sound[at : at + size * 2], False, 1.0)
            ]
        )
        assert detector.position_ms == len(sound) // 32
    assert len(told[0]) >= 2
    assert all(each == told[0] for each in told)


def test_a_turn_ends_after_a_minute_and_the_next_begins_where_it_ended(line: Line) -> None:
    turns = line.speech(1900)
    end_ms = 60_000
    assert turns == [Started(0), Stopped(end_ms, end_ms), Started(end_ms)]


def test_no_turn_reaches_back_into_the_one_before(detector: Detector, line: Line) -> None:
    detector.settings = Settings(silence_ms=64)
    stopped = line.speech(4) + line.room(2)
    assert stopped[-1] == Stopped(6 * FRAME_MS, 4 * FRAME_MS)
    assert line.speech(2) == [Started(6 * FRAME_MS)]


def test_a_client_that_sends_nothing_ends_its_turn_by_the_clock(line: Line) -> None:
    assert line.detector.deadline == math.inf
    line.speech(10)
    line.room(5)
    due = line.now + 0.6 - 5 * FRAME_MS / 1000
    assert line.detector.deadline == pytest.approx(due)
    assert line.detector.timer(due - 0.001) == []
    assert line.detector.timer(due + 0.5) == [Stopped(10 * FRAME_MS + 600, 10 * FRAME_MS)]
    assert line.detector.deadline == math.inf
    assert line.detector.timer(due + 1) == []


def test_the_silence_that_then_arrives_ends_nothing_twice(line: Line) -> None:
    line.speech(10)
    line.detector.timer(line.detector.deadline)
    assert line.detector.hear(bytes(FRAME * 2 * 93), False, line.now + 3) == []
    line.now += 3
    line.room(10)
    assert line.detector.position_ms == 113 * FRAME_MS
    assert line.speech(2) == [Started(113 * FRAME_MS - 300)]


def test_digital_silence_is_counted_but_not_asked_about() -> None:
    vad = Marked()
    detector = Detector(vad)
    line = Line(detector)
    line.speech(10)
    asked = vad.asked
    turns = detector.hear(bytes(32_000 * 10), False, line.now + 10)
    assert turns == [Stopped(26 * FRAME_MS, 10 * FRAME_MS)]
    assert vad.asked - asked <= 16
    assert detector.position_ms == 10 * FRAME_MS + 10_000
    line.room(1)
    assert vad.asked > asked + 15


def test_another_silence_holds_at_once(line: Line) -> None:
    line.speech(10)
    line.room(10)
    line.detector.settings = Settings(silence_ms=1200)
    assert line.room(27) == []
    assert line.room(1) == [Stopped(48 * FRAME_MS, 10 * FRAME_MS)]


def test_without_settings_nothing_is_looked_for_but_time_passes(line: Line) -> None:
    line.speech(10)
    line.detector.settings = None
    assert not line.detector.speaking
    assert line.detector.deadline == math.inf
    assert line.speech(10) + line.room(40) == []
    line.detector.settings = Settings()
    assert line.speech(2) == [Started(60 * FRAME_MS - 300)]


def test_a_forgotten_turn_is_never_stopped(line: Line) -> None:
    line.speech(10)
    line.detector.forget()
    assert not line.detector.speaking
    assert line.room(40) == []


def test_a_speaking_agent_is_interrupted_by_its_own_measure() -> None:
    playing = Sensitivity(min_speech_ms=200, threshold=0.8)
    detector = Detector(Marked(), limits=Limits(playing=playing))
    line = Line(detector, playing=True)
    assert line.frames(*[0.7] * 20) == []
    assert line.speech(6) + line.room(1) == []
    assert line.speech(7) != []


def test_backchannels_of_a_frame_interrupt_nobody_but_a_short_word_does(line: Line) -> None:
    line.playing = True
    line.room(20)
    assert line.speech(1) + line.room(20) == []
    assert line.speech(6) + line.room(20) == [
        Started(41 * FRAME_MS - 300),
        Stopped(63 * FRAME_MS, 47 * FRAME_MS),
    ]


class Deaf:
    """A guard that takes all for echo, or nothing."""

    def __init__(self) -> None:
        self.echo: bool | None = True
        self.times: list[float] = []

    def heard(self, samples: bytes, now: float) -> None:
        assert len(samples) == 2 * FRAME
        self.times.append(now)

    def echoes(self) -> bool | None:
        return self.echo


def guarded() -> tuple[Detector, Deaf]:
    guard = Deaf()
    return Detector(Marked(), guard), guard  # type: ignore[arg-type]


def test_echo_is_no_speech() -> None:
    detector, guard = guarded()
    line = Line(detector, playing=True)
    assert line.speech(100) == []
    assert not detector.suspects
    guard.echo = False
    assert line.speech(2) != []
    guard.echo = True
    assert [type(each) for each in line.speech(40)] == [Stopped]


def test_once_the_agent_is_silent_a_turn_goes_on_whatever_it_is_like() -> None:
    detector, guard = guarded()
    line = Line(detector, playing=True)
    guard.echo = False
    line.speech(5)
    line.playing, guard.echo = False, True
    assert line.speech(40) == []
    assert [type(each) for each in line.room(16)] == [Stopped]
    assert line.speech(10) == []


def test_what_may_be_echo_begins_no_turn_but_belongs_to_what_does() -> None:
    detector, guard = guarded()
    line = Line(detector, playing=True)
    line.room(20)
    guard.echo = None
    assert line.speech(4) == []
    assert detector.suspects
    guard.echo = False
    assert line.speech(1) == [Started(20 * FRAME_MS - 300)]
    guard.echo = None
    assert line.speech(20) == []


def test_the_guard_learns_when_each_frame_ended() -> None:
    detector, guard = guarded()
    detector.hear(bytes(FRAME * 2 * 3 + 320 * 2), False, 10.0)
    assert guard.times == pytest.approx([10.0 - back for back in (0.084, 0.052, 0.020)])


def speaking(turns: Iterable[Turn]) -> list[type[Turn]]:
    return [type(each) for each in turns]


def test_a_real_short_word_is_a_turn_with_its_beginning() -> None:
    clip = clips()[0]
    start = round(clip.speech[0].start * 16_000)
    word = np.concatenate(
        [clip.samples[start - 9_600 : start + 3_200], clip.samples[:9_600], clip.samples[:9_600]]
    )
    turns = Detector(make("silero")).hear(word.tobytes(), True, 5.0)
    assert speaking(turns) == [Started, Stopped]
    assert 200 <= turns[0][0] <= 300 + 2 * FRAME_MS
