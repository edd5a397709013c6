import math
import weakref

import pytest

from tests.unit.transceiver.audio.spoken import packet, packets
from transceiver.audio.uplink import Sound
from transceiver.backends.listener import Listener


class Ear(Listener):
    def __init__(self) -> None:
        super().__init__(16_000)
        self.heard: list[tuple[float, Sound]] = []

    def _hear(self, sound: Sound, now: float) -> None:
        self.heard.append((now, sound))


def test_hears_each_packet_at_its_arrival() -> None:
    ear = Ear()
    for n, payload in enumerate(packets()[:10]):
        ear.receive(packet(n, payload=payload), True, n * 0.02)
    assert [now for now, _ in ear.heard] == pytest.approx([n * 0.02 for n in range(10)])
    assert {len(sound.samples) for _, sound in ear.heard} == {640}
    assert ear.statistics()["late"] == 0


def test_a_gap_is_repaired_at_its_time() -> None:
    ear = Ear()
    for n in (0, 1, 3):
        ear.receive(packet(n, payload=packets()[n]), True, n * 0.02)
    assert len(ear.heard) == 2
    ear.timer(ear.deadline)
    assert len(ear.heard) == 4
    assert ear.deadline == math.inf
    assert ear.statistics()["concealed"] == 1


def test_away_it_hears_nothing() -> None:
    ear = Ear()
    ear.receive(packet(0, payload=packets()[0]), True, 0.0)
    ear.receive(packet(2, payload=packets()[2]), True, 0.04)
    ear.pause()
    assert ear.deadline == math.inf
    ear.timer(10.0)
    ear.receive(packet(3, payload=packets()[3]), True, 10.0)
    assert len(ear.heard) == 1
    ear.resume()
    ear.timer(10.0)
    assert len(ear.heard) == 3


def test_closed_it_holds_no_codec() -> None:
    ear = Ear()
    ear.receive(packet(0, payload=packets()[0]), True, 0.0)
    held = weakref.ref(ear._uplink)
    ear.close()
    assert held() is None
    ear.receive(packet(1, payload=packets()[1]), True, 0.02)
    ear.timer(1.0)
    assert len(ear.heard) == 1
    assert ear.deadline == math.inf
