from tests.conversations.heard import Heard
from tests.conversations.mouth import RATE, phrase
from transceiver.audio.opus import Encoder


def packets(loud: bool, count: int, encoder: Encoder) -> list[bytes]:
    size = RATE // 50
    pcm = (phrase(0, count / 50) * 20000).astype("<i2") if loud else None
    return [
        encoder.encode(bytes(size * 2) if pcm is None else pcm[n * size : (n + 1) * size].tobytes())
        for n in range(count)
    ]


def test_sound_is_told_from_silence() -> None:
    heard, encoder = Heard(), Encoder(RATE)
    for at, payload in enumerate([*packets(True, 10, encoder), *packets(False, 20, encoder)]):
        heard.packet(payload, float(at))
    assert heard.last_loud in (9.0, 10.0)  # the coder looks ahead
    assert heard.loud_between(-1.0, 9.0) == 10
    assert heard.loud_between(11.0, 30.0) == 0


def test_nothing_was_heard_before_anything_came() -> None:
    assert Heard().last_loud < 0


def test_events_keep_their_order_and_times() -> None:
    heard = Heard()
    heard.event({"type": "a"}, 1.0)
    heard.event({"type": "b"}, 2.0)
    assert heard.kinds() == ["a", "b"]
    assert heard.event_times == [1.0, 2.0]
