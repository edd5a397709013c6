import numpy as np
import pytest

from tests.conversations.clips import phrases
from tests.conversations.loudspeaker import FRAME, RATE, Loudspeaker
from tests.lab.speech import OTHER
from transceiver.audio.opus import Decoder, Encoder
from transceiver.turns.guard import match

WORDS = phrases(OTHER)[1]


def heard(
    room: Loudspeaker, after_s: float = 1.0
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    """What comes back of the words, at 16 kHz."""
    encoder, decoder, out = Encoder(RATE), Decoder(RATE), b""
    said = np.concatenate([WORDS, np.zeros(round(after_s * RATE), np.int16)])
    for at in range(0, len(said) - FRAME + 1, FRAME):
        frame = said[at : at + FRAME]
        out += decoder.decode(room.step(encoder.encode(frame.tobytes())))
    return np.frombuffer(out, np.int16).astype(np.float32)


def level_db(back: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]") -> float:
    return float(10 * np.log10(np.sum(back.astype(float) ** 2) / np.sum(WORDS.astype(float) ** 2)))


@pytest.mark.parametrize("delay_s", [0.15, 0.75])
def test_words_come_back_late_and_quiet(delay_s: float) -> None:
    back = heard(Loudspeaker(delay_s, room_db=-90))
    size = len(WORDS) // FRAME * FRAME
    likeness, _ = match(WORDS[:size].astype(np.float32), back)
    at = int(np.argmax(likeness))
    assert likeness[at] > 0.85
    assert 0 <= at / RATE - delay_s < 0.02  # two codecs
    assert level_db(back) == pytest.approx(-20, abs=1)


def test_a_room_sounds_on_after_the_last_word() -> None:
    end = len(WORDS) + round(0.15 * RATE)
    dry, wet = (
        heard(Loudspeaker(0.1, reverberation_s=seconds, room_db=-90))[end : end + RATE // 10]
        for seconds in (0.0, 0.4)
    )
    assert level_db(wet) - level_db(dry) > 10


def test_a_voice_is_heard_as_it_is() -> None:
    room, decoder = Loudspeaker(0.1), Decoder(RATE)
    frames = WORDS[: len(WORDS) // FRAME * FRAME].reshape(-1, FRAME).astype(float)
    back = b"".join(decoder.decode(room.step(None, frame)) for frame in frames)
    assert level_db(np.frombuffer(back, np.int16).astype(np.float32)) == pytest.approx(0, abs=1)
