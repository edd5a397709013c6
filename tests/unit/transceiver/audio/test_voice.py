import numpy as np
import pytest

from tests.unit.transceiver.audio.test_opus import FRAME, RATE, frames, values, voice
from transceiver.audio.opus import Decoder
from transceiver.audio.voice import FEC_S, SETTLED, Voice


def test_loss_turns_fec_on_for_a_while() -> None:
    speaker = Voice(RATE)
    speaker.loss(0.005, 100.0)
    assert not speaker.fec
    speaker.loss(0.02, 101.0)
    assert speaker.fec
    speaker.loss(0.0, 101.0 + FEC_S - 1)
    assert speaker.fec
    speaker.loss(0.0, 101.0 + FEC_S)
    assert not speaker.fec


def test_silence_is_encoded_until_it_is_settled() -> None:
    speaker = Voice(RATE)
    for frame in frames(voice(0.5)):
        speaker.encode(frame)
    packets = [speaker.silence() for _ in range(50)]
    assert len({id(packet) for packet in packets}) == SETTLED
    assert packets[SETTLED - 1] is packets[-1]
    speaker.encode(frames(voice(0.1))[0])
    assert speaker.silence() is not packets[-1]


def test_silence_with_fec_is_encoded_anew() -> None:
    speaker = Voice(RATE)
    before = [speaker.silence() for _ in range(SETTLED)][-1]
    speaker.loss(0.5, 1.0)
    assert speaker.silence() is not before
    speaker.loss(0.5, 2.0)
    assert speaker._silences == 1


def likeness(heard: bytes, said: bytes) -> float:
    """Correlation at the best delay below 15 ms."""
    a, b = values(heard), values(said)
    return max(
        float(np.corrcoef(a[lag : lag + len(b)], b)[0, 1]) for lag in range(RATE * 15 // 1000)
    )


@pytest.mark.parametrize("fec", [False, True])
def test_repeated_silence_cannot_be_heard_and_talk_after_it_is_as_good_as_ever(fec: bool) -> None:
    speaker, decoder = Voice(RATE), Decoder(RATE)
    if fec:
        speaker.loss(1.0, 0.0)
    said = frames(voice(1.0))
    for frame in said:
        decoder.decode(speaker.encode(frame))
    silence = [decoder.decode(speaker.silence()) for _ in range(500)]
    assert np.abs(values(b"".join(silence[SETTLED:]))).max() <= 2
    heard = b"".join(decoder.decode(speaker.encode(frame)) for frame in said)
    first = Voice(RATE)
    if fec:
        first.loss(1.0, 0.0)
    fresh = Decoder(RATE)
    reference = b"".join(fresh.decode(first.encode(frame)) for frame in said)
    for part in (slice(0, 3), slice(3, 10)):
        begin, end = part.start * FRAME * 2, part.stop * FRAME * 2
        wanted = b"".join(said[part])
        margin = FRAME * 2
        good = likeness(reference[begin : end + margin], wanted)
        assert likeness(heard[begin : end + margin], wanted) > good - 0.05


@pytest.mark.parametrize(
    ("tenths", "pieces"),
    [
        (25, [25]),
        (100, [100]),
        (200, [200]),
        (600, [600]),
        (75, [50, 25]),
        (300, [200, 100]),
        (800, [600, 200]),
        (1200, [600, 600]),
        (10, []),
    ],
)
def test_cuts_into_lengths_that_opus_has(tenths: int, pieces: list[int]) -> None:
    sound = bytes(range(256)) * 50
    sound = sound[: RATE * tenths // 10_000 * 2]
    speaker = Voice(RATE)
    cut = speaker.cut(sound)
    assert [len(piece) * 10_000 // RATE // 2 for piece in cut] == pieces
    if pieces:
        assert b"".join(cut) == sound
    for piece in cut:
        speaker.encode(piece)
