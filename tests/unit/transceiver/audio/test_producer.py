import pytest

from transceiver.audio.producer import BIN_S, LIVE, Producer


def feed(producer: Producer, seconds: float, ppm: float, began: float = 100.0) -> None:
    for n in range(round(seconds * 50)):
        producer.chunk(0.02, 0.1, began + n * 0.02 / (1 + ppm / 1e6))


@pytest.mark.parametrize("ppm", [-300, 0, 200])
def test_drift_of_a_live_producer(ppm: float) -> None:
    producer = Producer()
    feed(producer, 120, ppm)
    assert producer.drift == pytest.approx(ppm / 1e6, abs=5e-6)


def test_drift_is_unknown_at_first() -> None:
    producer = Producer()
    feed(producer, 2 * BIN_S - 1, 0)
    assert producer.drift is None
    feed(producer, 2 * BIN_S + 1, 0, began=300)
    assert producer.drift is None  # 200 s of nothing: no producer of real time


def test_who_is_not_live_has_no_drift() -> None:
    producer = Producer()
    feed(producer, 120, 2e6 * LIVE)
    assert producer.drift is None


def test_a_new_talk_is_a_new_line() -> None:
    producer = Producer()
    feed(producer, 60, 100)
    producer.end()
    assert producer.drift is None
    feed(producer, 60, -100, began=500)
    assert producer.drift == pytest.approx(-100e-6, abs=5e-6)


def test_who_comes_nearer_slowly_is_not_late() -> None:
    producer = Producer()
    for n in range(6000):
        producer.chunk(0.02, 0.19 - n * 3e-5, n * 0.02)
    assert producer.late < 0.02


def test_lateness_is_forgotten_with_the_sound_heard() -> None:
    producer = Producer()
    producer.chunk(0.02, 0.1, 0.9)
    producer.chunk(0.02, 0.0, 1.0)
    feed(producer, 10, 0)
    assert 0.03 < producer.late < 0.04
    producer.chunk(60, 0.1, 200.0)
    assert producer.late == 0
    producer.chunk(0.02, 5.0, 200.0)
    producer.chunk(0.02, 4.0, 201.0)
    assert producer.late == 0
