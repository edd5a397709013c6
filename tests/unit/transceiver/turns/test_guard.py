from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from tests.conversations.clips import phrases, read
from tests.lab.speech import OTHER, SPOKEN
from transceiver.turns.guard import Guard, match

RATE = 16_000
FRAME = 512
LOUD = 4.0  # times the room: frames that anybody would ask about

Row = npt.NDArray[np.float64]

AGENT = read(OTHER)[RATE // 5 : RATE * 5].astype(np.float64)
CALLER = phrases(SPOKEN)[0].astype(np.float64)


class Scene:
    """Asks about every loud frame; `asked` has the end of each in seconds, and the answer."""

    def __init__(self, noise: float = 12.0, loud: float = LOUD) -> None:
        """`loud` 0: asks about every frame."""
        self._loud = loud
        self.guard = Guard()
        self.asked: list[tuple[float, bool]] = []
        self.now = 40.0
        self.noise = noise
        self._chance = np.random.default_rng(2)

    def run(self, played: Row, heard: Row) -> None:
        """At once; what is played goes on as long as it is not empty."""
        for at in range(0, len(heard) - FRAME + 1, FRAME):
            piece = played[at : at + FRAME]
            if len(piece):
                self.guard.played(pcm(piece), self.now)
            self.now += FRAME / RATE
            sound = heard[at : at + FRAME]
            self.guard.heard(pcm(sound + self._chance.normal(0, self.noise, FRAME)), self.now)
            if np.mean(sound**2) >= (self._loud * self.noise) ** 2:
                self.asked.append(((at + FRAME) / RATE, self.guard.echoes() is not False))

    def share_of_echo(self, since: float = 0.0) -> float:
        return float(np.mean([echo for at, echo in self.asked if at > since]))


def pcm(samples: Row) -> bytes:
    return np.clip(np.round(samples), -32768, 32767).astype(np.int16).tobytes()


def echo(played: Row, delay_s: float, gain: float = 0.1, after_s: float = 1.5) -> Row:
    late = np.zeros(round(delay_s * RATE))
    silence = np.zeros(max(0, round(after_s * RATE) - len(late)))
    return np.concatenate([late, played * gain, silence])


def reverberating(played: Row) -> Row:
    """In a room that is half as loud as the word itself."""
    times = np.arange(RATE // 2)
    room = np.random.default_rng(4).standard_normal(len(times)) * 10 ** (-3 * times / len(times))
    room *= 10 ** (-3 / 20) / np.sqrt(np.sum(room**2))
    room[0] = 1.0
    size = 1 << 17
    return np.fft.irfft(np.fft.rfft(played, size) * np.fft.rfft(room, size), size)[: len(played)]


def leveled(voice: Row, level_db: float) -> Row:
    """Against the agent."""
    return np.asarray(
        voice * 10 ** (level_db / 20) * np.sqrt(np.mean(AGENT**2) / np.mean(voice**2))
    )


def over(heard: Row, voice: Row, at_s: float) -> Row:
    start = round(at_s * RATE)
    mixed = heard.copy()
    mixed[start : start + len(voice)] += voice[: len(mixed) - start]
    return mixed


@pytest.mark.parametrize("delay_s", [0.02, 0.15, 0.4, 0.75])
@pytest.mark.parametrize("gain", [0.03, 0.1, 0.3])
def test_a_delayed_quieter_copy_is_echo_from_its_first_frame_to_its_last(
    delay_s: float, gain: float
) -> None:
    scene = Scene()
    scene.run(AGENT, echo(AGENT, delay_s, gain))
    assert len(scene.asked) > 30
    assert scene.share_of_echo() == 1.0


@pytest.mark.parametrize("delay_s", [0.15, 0.75])
def test_a_person_over_the_echo_is_none(delay_s: float) -> None:
    scene = Scene()
    scene.run(AGENT, over(echo(AGENT, delay_s), CALLER, 2.0))
    assert all(is_echo for at, is_echo in scene.asked if at < 2.0)
    frames = [is_echo for at, is_echo in scene.asked if 2.05 < at < 2.05 + len(CALLER) / RATE]
    assert np.mean(frames) < 0.25
    assert not all(frames[:2])


def test_a_person_with_headphones_is_none_at_once_after_two_seconds_of_agent() -> None:
    scene = Scene()
    scene.run(AGENT, over(np.zeros(len(AGENT)), CALLER, 2.3))
    assert [is_echo for _, is_echo in scene.asked[:4]] == [False] * 4


def test_headphones_are_known_from_the_answer_before() -> None:
    for phrase in phrases(SPOKEN):
        scene = Scene()
        scene.run(AGENT[: 2 * RATE], np.zeros(4 * RATE))
        scene.run(AGENT, over(np.zeros(len(AGENT)), phrase.astype(np.float64), 0.5))
        assert [is_echo for _, is_echo in scene.asked[:4]] == [False] * 4


def test_a_microphone_that_was_off_tells_nothing_of_headphones() -> None:
    scene = Scene(noise=0.0)
    scene.run(AGENT[: 2 * RATE], np.zeros(3 * RATE))
    scene.asked.clear()
    scene.noise = 12.0
    start = round(1.6 * RATE)
    scene.run(AGENT[start:], echo(reverberating(AGENT)[start:], 0.3))
    assert all(one or next_ for (_, one), (_, next_) in pairwise(scene.asked))


@pytest.mark.parametrize("level_db", [0, -12])
@pytest.mark.parametrize("at_s", [0.5, 0.8, 1.0, 1.4])
def test_in_the_first_answer_a_stranger_is_a_person_by_the_second_frame(
    level_db: float, at_s: float
) -> None:
    for phrase in phrases(SPOKEN):
        scene = Scene()
        voice = leveled(phrase.astype(np.float64), level_db)
        scene.run(AGENT, over(np.zeros(len(AGENT)), voice, at_s))
        assert False in [is_echo for _, is_echo in scene.asked[:2]]


def test_a_chance_match_of_a_syllable_teaches_nothing() -> None:
    """The agent's own syllable, said by the caller, and then other words."""
    start = round(0.9 * RATE)
    heard = np.zeros(len(AGENT))
    heard[start : start + 3 * FRAME] = AGENT[start - RATE // 2 :][: 3 * FRAME] * 0.3
    scene = Scene()
    scene.run(AGENT, over(heard, CALLER, 1.1))
    assert not scene.guard._proven
    assert [is_echo for at, is_echo in scene.asked if at > 1.2][:4] == [False] * 4


def test_silence_rules_out_what_a_likeness_claims_until_it_lasts() -> None:
    scene = Scene()
    scene.run(AGENT[: 2 * RATE], np.zeros(4 * RATE))
    scene.run(AGENT[2 * RATE :], echo(AGENT[2 * RATE :], 0.3))
    assert [is_echo for _, is_echo in scene.asked[:3]] == [False] * 3
    assert all(is_echo for _, is_echo in scene.asked[-20:])


def test_what_is_louder_than_any_echo_is_none() -> None:
    scene = Scene()
    scene.run(AGENT, echo(AGENT, 0.3, gain=0.7))
    assert scene.share_of_echo() < 0.5


def test_what_is_known_holds_for_the_next_answer() -> None:
    scene = Scene()
    scene.run(AGENT, echo(AGENT, 0.3))
    scene.run(np.zeros(0), np.zeros(3 * RATE))
    scene.asked.clear()
    scene.run(AGENT, over(echo(AGENT, 0.3), CALLER, 0.1))
    assert not all(is_echo for at, is_echo in scene.asked if at < 0.25)
    assert scene.share_of_echo() < 0.5


def test_a_way_that_changes_is_learnt_anew() -> None:
    scene = Scene()
    scene.run(AGENT, echo(AGENT, 0.15))
    scene.run(np.zeros(0), np.zeros(3 * RATE))
    scene.asked.clear()
    scene.run(AGENT, echo(AGENT, 0.6, gain=0.25))
    assert scene.share_of_echo() == 1.0


def test_a_volume_that_is_turned_up_in_the_midst_of_a_word_makes_no_person() -> None:
    heard = echo(AGENT, 0.3, gain=0.07)
    heard[2 * RATE :] *= 3
    scene = Scene()
    scene.run(AGENT, heard)
    assert scene.share_of_echo() == 1.0


def test_the_echo_of_the_last_words_is_echo() -> None:
    scene = Scene()
    scene.run(AGENT, echo(AGENT, 0.75))
    end = len(AGENT) / RATE
    assert scene.share_of_echo(since=end) == 1.0


def test_long_after_the_end_nothing_is_echo() -> None:
    scene = Scene()
    scene.run(AGENT, echo(AGENT, 0.15, after_s=2.0))
    scene.asked.clear()
    scene.run(np.zeros(0), AGENT * 0.1)
    assert scene.asked
    assert scene.share_of_echo() == 0.0


def test_reverberation_is_echo() -> None:
    wet = reverberating(AGENT)
    for start_s in (0.0, 0.8, 1.6, 2.4):
        start = round(start_s * RATE)
        scene = Scene()
        scene.run(np.zeros(0), np.zeros(2 * RATE))
        scene.run(AGENT[start:], echo(wet[start:], 0.3))
        assert scene.share_of_echo() > 0.9
        assert all(one or next_ for (_, one), (_, next_) in pairwise(scene.asked))


def test_a_noisy_room_after_a_word_is_as_little_a_person() -> None:
    scene = Scene(noise=90.0, loud=0.0)
    scene.run(AGENT, echo(AGENT, 0.15))
    scene.asked.clear()
    scene.run(AGENT, echo(AGENT, 0.15))
    assert len(scene.asked) > 150
    assert scene.share_of_echo() > 0.97
    assert all(one or next_ for (_, one), (_, next_) in pairwise(scene.asked))


def test_a_noisy_room_hides_no_echo_and_is_none_of_its_own() -> None:
    scene = Scene(noise=90.0)
    scene.run(AGENT, echo(AGENT, 0.15))
    assert scene.share_of_echo() == 1.0


def test_without_a_word_of_ours_there_is_no_echo() -> None:
    scene = Scene()
    scene.run(np.zeros(0), CALLER)
    assert scene.share_of_echo() == 0.0


def test_a_gap_in_what_is_played_is_a_gap_of_time() -> None:
    scene = Scene()
    scene.run(AGENT[: 2 * RATE], echo(AGENT[: 2 * RATE], 0.15, after_s=1.0))
    scene.run(AGENT[2 * RATE :], echo(AGENT[2 * RATE :], 0.15))
    assert scene.share_of_echo() == 1.0


def test_keeps_a_few_seconds() -> None:
    guard = Guard()
    for number in range(2000):
        guard.played(bytes(640), number * 0.02)
        guard.heard(bytes(1024), number * 0.032)
    assert len(guard._played._pieces) < 220
    assert len(guard._heard._pieces) < 70


def test_match_finds_the_piece_and_says_how_alike_it_is() -> None:
    chance = np.random.default_rng(1)
    played = chance.normal(0, 1000, 4000).astype(np.float32)
    likeness, energies = match(-0.2 * played[1234:2234], played)
    assert np.argmax(likeness) == 1234
    assert likeness[1234] > 0.99
    assert energies[1234] == pytest.approx(np.sum(played[1234:2234].astype(float) ** 2))
    stranger = chance.normal(0, 1000, 1000).astype(np.float32)
    assert np.max(match(stranger, played)[0]) < 0.2
    assert np.max(match(np.zeros(1000, np.float32), played)[0]) < 0.01
