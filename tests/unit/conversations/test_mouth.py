import numpy as np

from tests.conversations import mouth
from tests.conversations.heard import Heard
from tests.conversations.mouth import FRAME, RATE, Mouth

LOUD = np.full(FRAME, 0.1)
QUIET = np.zeros(FRAME)


def test_phrases_are_parted_by_pauses_of_240_ms_and_more() -> None:
    samples = np.concatenate([*[QUIET] * 3, *[LOUD] * 2, *[QUIET] * 11, *[LOUD] * 2, *[QUIET] * 12])
    assert [len(piece) // FRAME for piece in mouth.cut(samples)] == [15]
    samples = np.concatenate([LOUD, *[QUIET] * 12, LOUD, LOUD])
    assert [len(piece) // FRAME for piece in mouth.cut(samples)] == [1, 2]


def test_nothing_is_said_in_silence() -> None:
    assert mouth.cut(np.zeros(RATE)) == []


def test_every_phrase_begins_and_ends_with_speech() -> None:
    for phrase in mouth.phrases():
        for edge in (phrase[:FRAME], phrase[-FRAME:]):
            assert np.sqrt(np.mean(edge**2)) >= mouth.LOUD
    assert len(mouth.phrases()) >= 10


def test_a_mouth_says_what_it_was_given_and_then_only_the_room_is_heard() -> None:
    speaker, heard = Mouth(), Heard()
    speaker.say(np.concatenate([mouth.phrase(2, 0.2), mouth.phrase(2, 0.1)]))
    spoke = []
    for number in range(40):
        spoke.append(speaker.speaking)
        heard.packet(speaker.packet(), float(number))
    assert spoke == [True] * 15 + [False] * 25
    assert heard.loud[:14].count(True) >= 13
    assert not any(heard.loud[18:])


def test_hush_ends_it() -> None:
    speaker = Mouth()
    speaker.say(mouth.phrase(2))
    speaker.hush()
    assert not speaker.speaking
