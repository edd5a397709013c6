from tests.realtime_server.sound import tone
from tests.realtime_server.turns import Started, Stopped, Turns


def heard(turns: Turns, samples: bytes, size: int) -> list[Started | Stopped]:
    return [
        news for at in range(0, len(samples), size) for news in turns.hear(samples[at : at + size])
    ]


SPEECH = bytes(48000) + tone(0.5) + bytes(48000) + tone(0.5)


def test_a_turn_ends_with_its_silence_whatever_the_pieces() -> None:
    for size in (960, 100, 48000, len(SPEECH)):
        turns = Turns(silence_ms=500, padding_ms=300)
        assert heard(turns, SPEECH, size) == [Started(700), Stopped(2000), Started(2200)]
        assert turns.speaking


def test_a_pause_shorter_than_the_silence_is_no_end() -> None:
    assert heard(Turns(silence_ms=1200, padding_ms=0), SPEECH, 960) == [Started(1000)]


def test_a_click_is_no_speech() -> None:
    assert heard(Turns(), tone(0.05) + bytes(4800), 960) == []
