import numpy as np

from transceiver.turns.turn_audio import TurnAudio


def sound(start_ms: int, end_ms: int) -> bytes:
    """Every sample tells its place, modulo 2^16."""
    return np.arange(start_ms * 16, end_ms * 16).astype(np.uint16).tobytes()


def hearing(milliseconds: int, step_ms: int = 20) -> TurnAudio:
    audio = TurnAudio()
    for at in range(0, milliseconds, step_ms):
        audio.add(sound(at, at + step_ms))
    return audio


def test_a_turn_reaches_back_to_its_begin() -> None:
    audio = hearing(2000)
    audio.begin(1500)
    assert audio.samples() == sound(1500, 2000)
    assert audio.samples(1900) == sound(1500, 1900)
    assert audio.position_ms == 2000


def test_a_turn_that_is_resumed_goes_on() -> None:
    audio = hearing(1000)
    audio.begin(800)
    audio.add(sound(1000, 1500))
    assert audio.samples(1200) == sound(800, 1200)
    audio.begin(1300)
    audio.add(sound(1500, 2000))
    assert audio.samples(1900) == sound(800, 1900)


def test_the_next_turn_begins_anew_after_release() -> None:
    audio = hearing(1000)
    audio.begin(800)
    audio.release()
    assert not audio.open
    assert audio.samples() == b""
    audio.begin(900)
    assert audio.open
    assert audio.samples() == sound(900, 1000)


def test_outside_of_turns_only_a_prefix_is_kept() -> None:
    audio = hearing(60_000)
    assert len(audio._sound) <= 3200 * 32
    audio.begin(0)
    assert len(audio.samples()) >= 2500 * 32
    assert sound(0, 60_000).endswith(audio.samples())


def test_above_a_minute_the_oldest_goes() -> None:
    audio = hearing(1000)
    audio.begin(0)
    for at in range(1000, 70_000, 100):
        audio.add(sound(at, at + 100))
    assert audio.samples() == sound(10_000, 70_000)
    assert len(audio._sound) <= 61_000 * 32


def test_a_begin_or_end_that_has_not_come_yet_is_now() -> None:
    audio = hearing(1000)
    audio.begin(1200)
    assert audio.samples() == audio.samples(1500) == b""
    audio.add(sound(1000, 1100))
    assert audio.samples(1500) == sound(1000, 1100)
