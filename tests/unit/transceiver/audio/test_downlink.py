import math
import random
from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transceiver.audio.downlink import (
    FADE_S,
    MAX_CUSHION_S,
    MAX_QUEUE_S,
    SLOT_S,
    STALL_S,
    Downlink,
    Frame,
)

RATE = 24000
SIZE = RATE // 50 * 2  # bytes of a frame


def ramp(seconds: float, start: int = 1) -> bytes:
    """Samples that tell their place: 1, 2, 3 ..., below 20,000."""
    count = round(seconds * RATE)
    return array("h", ((start + n - 1) % 20_000 + 1 for n in range(count))).tobytes()


class Rig:
    """Slots at 20 ms on a clock of its own; `heard` are their frames."""

    def __init__(self, first: int = 0, rate: int = RATE) -> None:
        self.downlink = Downlink(rate, first)
        self.n = 0
        self.heard: list[Frame] = []
        self.cushions: list[float] = []

    @property
    def now(self) -> float:
        return self.n * SLOT_S

    def slots(self, count: int) -> list[Frame]:
        frames = []
        for _ in range(count):
            frames.append(self.downlink.slot(self.n, self.now))
            self.cushions.append(self.downlink.cushion)
            self.n += 1
        self.heard += frames
        return frames

    def play(self, samples: bytes, after: float = 0.0) -> bool:
        """A chunk, `after` seconds behind the last slot."""
        return self.downlink.play(samples, self.now - SLOT_S + after)

    def sound(self) -> bytes:
        return b"".join(frame.samples or bytes(SIZE) for frame in self.heard)


def test_is_silent_while_nothing_is_played() -> None:
    rig = Rig(first=0xFFFFFFFF - 960)
    frames = rig.slots(3)
    assert [frame.samples for frame in frames] == [None] * 3
    assert [frame.timestamp for frame in frames] == [0xFFFFFFFF - 960, 0xFFFFFFFF, 959]
    assert not any(frame.marker for frame in frames)


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=60), st.sampled_from([8000, 24000]))
def test_chunks_of_any_size_come_out_as_they_went_in(sizes: list[int], rate: int) -> None:
    rig = Rig(rate=rate)
    rig.slots(1)
    dice = random.Random(1)
    said = dice.randbytes(sum(sizes))
    at = 0
    for size in sizes:
        rig.play(said[at : at + size])
        at += size
    whole = len(said) // 2 * 2
    frames = rig.slots(whole // (rate // 50 * 2) + 3)
    heard = b"".join(frame.samples for frame in frames if frame.samples)
    fade = int(rate * FADE_S) * 2
    assert heard[fade:whole] == said[fade:whole]
    assert rig.downlink.sent == whole // 2
    assert [frame.marker for frame in frames] == [whole > 0] + [False] * (len(frames) - 1)


def test_half_a_sample_waits_for_its_other_half_even_across_a_refusal() -> None:
    rig = Rig()
    said = ramp(0.1)
    assert rig.play(said[:961])
    refused = int(MAX_QUEUE_S * RATE * 2)
    assert not rig.play(said[961:962] + bytes(refused - 2) + said[962:963])
    assert rig.downlink.refused == refused // 2
    rig.play(said[963:])
    rig.slots(6)
    assert rig.sound()[200 : len(said) - 2] == said[200:960] + said[962:]


def test_what_waits_is_bounded() -> None:
    rig = Rig()
    second = bytes(RATE * 2)
    assert [rig.play(second) for _ in range(125)] == [True] * 120 + [False] * 5
    assert rig.downlink.queued == 120 * RATE
    assert rig.downlink.refused == 5 * RATE
    rig.slots(1)
    assert rig.play(bytes(SIZE))
    assert not rig.play(bytes(2))


def test_one_frame_is_enough_to_begin() -> None:
    rig = Rig()
    rig.slots(5)
    rig.play(ramp(0.02))
    assert [frame.marker for frame in rig.slots(2)] == [True, False]


def test_less_than_a_frame_waits_as_long_as_a_frame() -> None:
    rig = Rig()
    rig.slots(1)
    rig.play(ramp(0.004), after=0.001)
    assert [frame.samples is None for frame in rig.slots(3)] == [True, False, True]


def test_sound_fades_in_and_out_where_it_is_cut() -> None:
    rig = Rig()
    rig.play(array("h", [10_000] * (RATE // 40)).tobytes())  # 25 ms
    values = array("h", b"".join(frame.samples or b"" for frame in rig.slots(3)))
    steps = [abs(b - a) for a, b in pairwise(values)]
    assert values[0] == 0
    assert values[-1] == 0
    assert max(steps) <= 10_000 / (RATE * FADE_S) + 1


def test_flush_is_silence_after_a_fade_within_one_slot() -> None:
    rig = Rig()
    rig.play(array("h", [10_000] * RATE).tobytes())
    rig.slots(10)
    assert rig.downlink.flush() == RATE - 10 * RATE // 50
    assert rig.downlink.queued == 0
    fade, *rest = rig.slots(3)
    assert fade.samples is not None
    values = array("h", fade.samples)
    assert values[0] == 10_000
    assert not any(values[int(RATE * FADE_S) :])
    assert [frame.samples for frame in rest] == [None, None]
    assert rig.downlink.sent == 10 * RATE // 50
    assert rig.downlink.flush() == 0
    rig.play(ramp(0.1))
    assert rig.slots(1)[0].marker


def test_after_a_flush_another_talk_is_measured_by_itself() -> None:
    rig = Rig()
    for _ in range(20):
        rig.play(ramp(0.03))
        rig.slots(1)
    rig.downlink.flush()
    for _ in range(20):
        rig.play(ramp(0.02))
        rig.slots(1)
    assert rig.downlink.cushion < 0.025


def test_a_cut_wave_has_no_jump() -> None:
    rig = Rig()
    wave = [round(10_000 * math.sin(2 * math.pi * 210 * n / RATE)) for n in range(RATE)]
    rig.play(array("h", wave).tobytes())
    rig.slots(3)
    rig.downlink.flush()
    rig.slots(2)
    values = array("h", rig.sound())
    steps = [abs(b - a) for a, b in pairwise(values)]
    assert max(steps) <= 2 * max(abs(b - a) for a, b in pairwise(wave))


def test_positions_account_for_every_sample() -> None:
    rig = Rig()
    dice = random.Random(2)
    given = 0
    for _ in range(400):
        chunk = bytes(2 * dice.randrange(0, 1200))
        if rig.play(chunk):
            given += len(chunk) // 2
        if dice.random() < 0.02:
            rig.downlink.flush()
        rig.slots(1)
        d = rig.downlink
        assert given == d.sent + d.queued + d.flushed + d.trimmed


def test_skipped_slots_move_the_time_and_take_no_sound() -> None:
    rig = Rig()
    said = ramp(0.1)
    rig.play(said)
    rig.slots(2)
    rig.n += 3
    after = rig.slots(2)
    assert [frame.timestamp for frame in after] == [5 * 960, 6 * 960]
    assert after[0].samples == said[2 * SIZE : 3 * SIZE]
    assert not after[0].marker
    assert rig.downlink.skipped == 3


def test_slept_slots_are_not_skipped_ones() -> None:
    rig = Rig()
    rig.downlink.sleep(7)
    rig.slots(1)
    rig.n += 500
    rig.downlink.sleep(rig.n - 1)
    assert rig.slots(1)[0].timestamp == 501 * 960
    assert rig.downlink.skipped == 0


def live(rig: Rig, seconds: float, jitter: float, *, dice: random.Random, ppm: float = 0) -> int:
    """A producer in real time whose chunks of 20 ms come 0 to `jitter` seconds late, in order;
    returns the underruns."""
    before = rig.downlink.underruns
    began = rig.n
    step = SLOT_S * (1 - ppm / 1e6)
    arrivals = [
        (began * SLOT_S + n * step + dice.uniform(0, jitter)) for n in range(round(seconds / step))
    ]
    for n in range(1, len(arrivals)):
        arrivals[n] = max(arrivals[n], arrivals[n - 1])
    at = 0
    while rig.n < began + round(seconds / SLOT_S):
        while at < len(arrivals) and arrivals[at] <= rig.now:
            rig.downlink.play(ramp(SLOT_S, 5000), arrivals[at])
            at += 1
        rig.slots(1)
    return rig.downlink.underruns - before


def test_the_cushion_grows_with_jitter_and_shrinks_back() -> None:
    rig, dice = Rig(), random.Random(3)
    assert rig.downlink.cushion == SLOT_S
    live(rig, 20, 0.0, dice=dice)
    assert rig.downlink.underruns == 0
    assert rig.downlink.cushion == pytest.approx(SLOT_S, abs=0.001)
    live(rig, 30, 0.1, dice=dice)
    assert 0.08 < rig.downlink.cushion <= 0.15
    assert live(rig, 30, 0.1, dice=dice) <= 2
    rig.slots(50)
    live(rig, 60, 0.0, dice=dice)
    assert rig.downlink.cushion == pytest.approx(SLOT_S, abs=0.01)


def test_the_cushion_has_a_limit() -> None:
    rig, dice = Rig(), random.Random(4)
    live(rig, 30, 0.6, dice=dice)
    assert max(rig.cushions) == MAX_CUSHION_S


def test_who_runs_ahead_needs_no_cushion_and_is_never_cut() -> None:
    rig = Rig()
    for _ in range(20):  # each second 5 s of sound come, in quiet
        rig.play(bytes(5 * RATE * 2))
        rig.slots(250)
    assert rig.downlink.cushion == pytest.approx(SLOT_S)
    assert rig.downlink.trimmed == 0


def test_a_pause_is_no_underrun() -> None:
    rig = Rig()
    for _ in range(3):
        rig.play(ramp(1))
        rig.slots(50 + round(STALL_S / SLOT_S) + 2)
    assert rig.downlink.underruns == 0
    assert rig.downlink.cushion == SLOT_S


def test_late_sound_of_a_talk_is_an_underrun_and_grows_the_cushion_by_it() -> None:
    rig = Rig()
    rig.play(ramp(0.2))
    rig.slots(16)  # 6 slots dry
    rig.play(ramp(0.2))
    assert rig.downlink.underruns == 1
    assert rig.downlink.cushion == pytest.approx(SLOT_S + 0.1, abs=0.021)


def test_a_live_producer_is_followed_in_its_quiet_frames() -> None:
    rig = Rig()
    quiet = bytes(SIZE)
    for n in range(3000):
        if n == 600:
            rig.n += 8  # the process was late: 160 ms wait from now on
            for _ in range(8):
                rig.play(quiet)
        rig.play(quiet)
        rig.slots(1)
    d = rig.downlink
    assert 0.1 < d.trimmed / RATE <= 0.16
    assert d.queued_s <= 0.04
    assert d.underruns == 0
    assert max(rig.cushions) < 0.05  # coming nearer is no lateness of the producer
    assert d.sent + d.queued + d.trimmed == 3008 * RATE // 50


def test_pauses_of_a_talk_that_may_not_be_live_stay() -> None:
    rig = Rig()
    quiet = bytes(SIZE)
    rig.play(quiet * 15)
    for _ in range(450):
        rig.play(quiet)
        rig.slots(1)
    assert rig.downlink.trimmed == 0


def test_loud_frames_are_never_left_out() -> None:
    rig = Rig()
    loud = array("h", [1000] * (SIZE // 2)).tobytes()
    rig.play(loud * 10)
    for _ in range(3000):
        rig.play(loud)
        rig.slots(1)
    assert rig.downlink.trimmed == 0


def test_drift_is_measured() -> None:
    rig, dice = Rig(), random.Random(5)
    live(rig, 90, 0.03, dice=dice, ppm=500)
    assert rig.downlink.drift == pytest.approx(500e-6, abs=150e-6)
