from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.transceiver.backends.around import Wire
from transceiver.audio.downlink import SLOT_S
from transceiver.playback import MAX_PARTS, Audible, Notice, Playback, Silent
from transceiver.remembered import Heard

RATE = 8000
FRAME = RATE // 50


def sound(seconds: float) -> bytes:
    return b"\x10\x10" * round(seconds * RATE)


class Rig:
    """A playback on a wire; `notices` are what it told and when."""

    def __init__(self, buffer_s: float = 0.0, rtt: float | None = None) -> None:
        self.wire = Wire()
        self.wire.rtt = rtt
        self.wire.open(RATE, self._frame)
        self.playback = Playback(self.wire, RATE, buffer_s)
        self.notices: list[tuple[float, Notice]] = []
        self.frames: list[tuple[float, int]] = []  # time, samples sent by then

    def _frame(self, now: float) -> None:
        self.frames.append((now, self.wire.sent))
        self.notices += [(now, notice) for notice in self.playback.frame(now)]

    @property
    def told(self) -> list[Notice]:
        return [notice for _, notice in self.notices]

    def say(self, response: str, seconds: float, item: str = "", ended: bool = True) -> bool:
        item = item or f"item_of_{response}"
        taken = self.playback.play(response, item, 0, sound(seconds), self.wire.now)
        if ended:
            self.end(response)
        return taken

    def end(self, response: str) -> None:
        now = self.wire.now
        self.notices += [(now, notice) for notice in self.playback.end(response, now)]

    def run(self, seconds: float) -> None:
        self.wire.run(self.wire.now + seconds)


def test_tells_when_a_response_is_heard_first_and_when_it_is_over() -> None:
    rig = Rig()
    assert not rig.playback.playing
    rig.say("r", 0.1)
    assert rig.playback.playing
    assert rig.playback.response_id == "r"
    assert rig.playback.waiting == RATE // 10
    rig.run(1.0)
    assert rig.told == [Audible("r"), Silent("r")]
    (began, _), (ended, _) = rig.notices
    assert ended - began == pytest.approx(4 * SLOT_S)
    assert not rig.playback.playing
    assert rig.playback.waiting == 0


def test_an_unfinished_response_that_runs_dry_is_not_over() -> None:
    rig = Rig()
    rig.say("r", 0.1, ended=False)
    rig.run(1.0)
    assert rig.told == [Audible("r")]
    rig.say("r", 0.1, ended=False)
    rig.run(1.0)
    assert rig.playback.playing
    rig.end("r")
    assert rig.told == [Audible("r"), Silent("r")]


def test_responses_wait_one_behind_the_other() -> None:
    rig = Rig()
    for response in "abc":
        rig.say(response, 0.11)
    rig.run(1.0)
    assert rig.told == [notice(response) for response in "abc" for notice in (Audible, Silent)]


def test_the_next_response_is_the_end_of_one_that_nobody_ended() -> None:
    rig = Rig()
    rig.say("a", 0.1, ended=False)
    rig.run(1.0)
    rig.say("b", 0.1, ended=False)
    rig.run(0.1)
    assert rig.told == [Audible("a"), Silent("a"), Audible("b")]
    assert rig.playback.response_id == "b"


def test_a_response_without_a_sound_is_neither_heard_nor_over() -> None:
    rig = Rig()
    rig.say("none", 0.0)
    assert rig.playback.play("half", "i", 0, b"\x10", rig.wire.now)
    rig.end("half")
    rig.run(0.5)
    assert not rig.told
    assert not rig.playback.playing
    assert rig.playback.clear(rig.wire.now) is None


def test_samples_may_come_in_halves_but_not_across_responses() -> None:
    rig = Rig()
    for piece in (b"\x10", b"\x10\x10", b"\x10\x10\x10"):
        assert rig.playback.play("a", "i", 0, piece, rig.wire.now)
    assert rig.playback.waiting == 3
    assert rig.playback.play("a", "i", 0, b"\x10", rig.wire.now)
    assert rig.playback.play("b", "i", 0, b"\x10", rig.wire.now)
    assert rig.playback.waiting == 3


def test_what_is_over_takes_no_more() -> None:
    rig = Rig()
    rig.say("a", 0.1)
    assert not rig.say("a", 0.1)
    assert rig.say("b", 0.1, ended=False)
    assert rig.say("c", 0.1, ended=False)
    assert rig.playback.stale("b")
    assert not rig.say("b", 0.1)
    rig.playback.drop("c")
    assert not rig.say("c", 0.1)
    assert rig.playback.waiting == 0.3 * RATE


def test_clear_drops_all_that_waits_and_what_still_comes_of_it() -> None:
    rig = Rig()
    rig.say("a", 1.0)
    rig.say("b", 1.0, ended=False)
    rig.run(0.5)
    cut = rig.playback.clear(rig.wire.now)
    assert cut is not None
    assert (cut.response_id, cut.item_id, cut.content_index) == ("a", "item_of_a", 0)
    assert cut.received_ms == 1000
    assert rig.wire.queued == 0
    assert not rig.say("b", 1.0)
    rig.run(1.0)
    assert rig.told == [Audible("a")]
    assert rig.playback.clear(rig.wire.now) is None
    assert rig.say("c", 0.1)
    rig.run(1.0)
    assert rig.told[1:] == [Audible("c"), Silent("c")]


def test_nothing_is_heard_before_the_first_frame_nor_cut_after_the_last() -> None:
    rig = Rig()
    rig.say("a", 0.2)
    cut = rig.playback.clear(rig.wire.now)
    assert cut is not None
    assert (cut.heard_ms, cut.received_ms) == (0, 200)
    rig.say("b", 0.2)
    rig.run(0.5)
    assert rig.playback.clear(rig.wire.now) is None


def test_a_dry_response_was_heard_whole() -> None:
    rig = Rig()
    rig.say("a", 0.2, ended=False)
    rig.run(0.5)
    cut = rig.playback.clear(rig.wire.now)
    assert cut is not None
    assert cut.heard_ms == cut.received_ms == 200


def test_each_item_of_a_response_counts_for_itself() -> None:
    rig = Rig()
    rig.say("a", 0.2, "first", ended=False)
    rig.say("a", 1.0, "second", ended=False)
    rig.run(0.5)
    cut = rig.playback.clear(rig.wire.now)
    assert cut is not None
    assert (cut.item_id, cut.received_ms) == ("second", 1000)
    assert 260 < cut.heard_ms <= 300


def test_between_two_items_the_first_was_the_last_on_the_wire() -> None:
    rig = Rig()
    rig.say("a", 0.2, "first", ended=False)
    rig.say("a", 1.0, "second", ended=False)
    while rig.wire.sent < 0.2 * RATE:
        rig.run(SLOT_S)
    cut = rig.playback.clear(rig.wire.now)
    assert cut is not None
    assert (cut.item_id, cut.received_ms) == ("first", 200)


@pytest.mark.parametrize(("rtt", "buffer_s"), [(None, 0.04), (0.1, 0.04), (0.3, 0.12), (60.0, 0.0)])
def test_the_ear_is_behind_the_wire(rtt: float | None, buffer_s: float) -> None:
    exact, late = Rig(), Rig(buffer_s, rtt)
    for rig in (exact, late):
        rig.say("a", 10.0)
        rig.run(5.0)
    near, far = exact.playback.clear(105.0), late.playback.clear(105.0)
    assert near is not None
    assert far is not None
    delay = min(2.0, (rtt or 0) / 2 + buffer_s)
    assert near.heard_ms - far.heard_ms == pytest.approx(delay * 1000, abs=1)


def test_while_the_client_is_away_nothing_is_heard() -> None:
    rig = Rig()
    rig.say("a", 10.0)
    rig.run(1.0)
    rig.wire.away = True
    rig.run(5.0)
    rig.wire.away = False
    rig.run(1.0)
    cut = rig.playback.clear(rig.wire.now)
    assert cut is not None
    assert cut.heard_ms == pytest.approx(2000, abs=20)


def test_more_than_two_minutes_are_refused_and_nothing_of_them_counts() -> None:
    rig = Rig()
    assert rig.say("a", 119.0)
    assert not rig.say("b", 2.0)
    assert rig.playback.waiting == 119 * RATE
    assert rig.playback.response_id == "a"


def test_many_small_items_are_refused() -> None:
    rig = Rig()
    taken = sum(rig.say("r", 0.001, f"item{n}", ended=False) for n in range(MAX_PARTS + 10))
    assert taken == MAX_PARTS
    rig.end("r")
    rig.run(2.0)
    assert rig.say("next", 0.1)


def test_what_is_not_on_the_wire_can_be_taken_back_and_played_later() -> None:
    rig = Rig()
    assert rig.playback.recall()
    rig.say("a", 1.0)
    assert rig.playback.recall()
    assert not rig.playback.playing
    rig.run(0.5)
    assert not rig.told
    rig.say("a", 1.0)
    rig.run(0.1)
    assert rig.told == [Audible("a")]
    assert not rig.playback.recall()
    rig.run(1.0)
    assert rig.told == [Audible("a"), Silent("a")]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 900), st.booleans()),
        st.tuples(st.just("run"), st.integers(1, 400), st.booleans()),
        st.tuples(st.just("away"), st.integers(1, 300), st.booleans()),
    ),
    max_size=25,
)


class Ear:
    """A client that plays each frame `delay` after it left, from its first sample on."""

    def __init__(self, rig: Rig, delay: float) -> None:
        self._rig = rig
        self._delay = delay

    def heard(self, start: int, end: int, now: float) -> int:
        """How many samples of a range of all that were sent."""
        count, frames = 0, [(0.0, 0), *self._rig.frames]
        for (_, before), (when, after) in pairwise(frames):
            played = range(before, min(after, before + round((now - self._delay - when) * RATE)))
            count += len(range(max(start, played.start), min(end, played.stop)))
        return count


@settings(max_examples=150, deadline=None)
@given(steps, st.sampled_from([0.0, 0.02, 0.1, 0.33]), st.sampled_from([None, 0.05, 0.4]))
def test_what_was_heard_is_what_an_ear_has_heard(
    script: list[tuple[str, int, bool]], buffer_s: float, rtt: float | None
) -> None:
    rig = Rig(buffer_s, rtt)
    ear = Ear(rig, buffer_s + (rtt or 0) / 2)
    ranges: dict[str, tuple[int, int]] = {}
    played, response = 0, 0
    for what, ms, ended in script:
        if what == "say":
            assert rig.say(f"r{response}", ms / 1000, ended=ended)
            start, end = ranges.get(f"r{response}", (played, played))
            played += ms * RATE // 1000
            ranges[f"r{response}"] = start, end + ms * RATE // 1000
            response += ended
        else:
            rig.wire.away = what == "away"
            rig.run(ms / 1000)
            rig.wire.away = False
    over = [notice.response_id for notice in rig.told if isinstance(notice, Silent)]
    assert over == sorted(over, key=lambda name: int(name[1:]))
    cut = rig.playback.clear(rig.wire.now)
    if cut is None:
        assert rig.wire.sent == played
        return
    start, end = ranges[cut.response_id]
    assert start <= rig.wire.sent <= end
    assert cut.received_ms == (end - start) * 1000 // RATE
    heard = ear.heard(start, end, rig.wire.now) * 1000 / RATE
    assert abs(cut.heard_ms - heard) <= 1


def test_tells_how_much_was_heard_of_what_plays_and_waits() -> None:
    rig = Rig(buffer_s=0.1)
    assert rig.playback.heard(rig.wire.now) == {}
    rig.say("r", 1.0)
    rig.say("s", 0.5)
    rig.run(0.6)
    assert rig.playback.heard(rig.wire.now) == {
        "item_of_r": Heard(500, 1000),
        "item_of_s": Heard(0, 500),
    }
    cut = rig.playback.clear(rig.wire.now)
    assert cut is not None
    assert (cut.item_id, cut.heard_ms, cut.received_ms) == ("item_of_r", 500, 1000)
