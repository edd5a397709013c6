import math

import numpy as np
import pytest

from tests.unit.transceiver.audio.test_opus import frames, values, voice
from transceiver.audio.opus import Decoder, Encoder
from transceiver.audio.voice import FEC_S
from transceiver.backends.base import Backend
from transceiver.backends.echo import RATE, Echo, Mirror, Mode, PacedEcho, make
from transceiver.rtp import Packet


class Outlet:
    def __init__(self) -> None:
        self.sent: list[tuple[bytes, int, bool]] = []
        self.rate = 0
        self.played: list[bytes] = []

    def send(self, payload: bytes, timestamp: int, marker: bool) -> None:
        self.sent.append((payload, timestamp, marker))

    def open(self, rate: int) -> None:
        self.rate = rate

    def play(self, samples: bytes) -> bool:
        self.played.append(samples)
        return True

    def flush(self) -> int:
        return 0


class Rig:
    """A backend that hears packets of 20 ms at their times."""

    def __init__(self, mode: Mode, ms: int = 20) -> None:
        self.outlet = Outlet()
        self.backend: Backend = make(self.outlet, mode)
        self.ms = ms
        encoder = Encoder(RATE, fec=True)
        self.said = voice(2.4)
        self.packets = [encoder.encode(f) for f in frames(self.said, RATE * ms // 1000)]

    def hear(self, n: int, at: float | None = None, payload: bytes | None = None) -> None:
        ticks = 48 * self.ms
        packet = Packet(
            111, n & 0xFFFF, n * ticks & 0xFFFFFFFF, 1, payload or self.packets[n % 100]
        )
        self.backend.receive(packet, True, n * self.ms / 1000 if at is None else at)

    @property
    def stamps(self) -> list[int]:
        return [stamp for _, stamp, _ in self.outlet.sent]


@pytest.mark.parametrize(
    ("mode", "kind"), [("audio", Echo), ("opus", Mirror), ("paced", PacedEcho)]
)
def test_modes(mode: str, kind: type) -> None:
    assert isinstance(make(Outlet(), Mode(mode)), kind)


def test_answers_each_packet_at_once_with_sound() -> None:
    rig, decoder = Rig(Mode.AUDIO), Decoder(RATE)
    for n in range(50):
        rig.hear(n)
        assert len(rig.outlet.sent) == n + 1
    assert rig.stamps == [n * 960 for n in range(50)]
    assert [marker for *_, marker in rig.outlet.sent] == [True] + [False] * 49
    heard = values(b"".join(decoder.decode(payload) for payload, *_ in rig.outlet.sent))
    said = values(rig.said)[: len(heard) - 960]
    assert max(np.corrcoef(heard[lag : lag + len(said)], said)[0, 1] for lag in range(960)) > 0.5


def test_a_lost_packet_is_repaired_in_its_place() -> None:
    rig = Rig(Mode.AUDIO)
    for n in range(20):
        if n != 10:
            rig.hear(n)
    assert rig.stamps == [n * 960 for n in range(20)]
    assert not any(marker for *_, marker in rig.outlet.sent[1:])
    statistics = rig.backend.statistics()
    assert statistics["recovered"] + statistics["concealed"] == 1


def test_a_gap_is_closed_by_the_timer_when_nothing_follows() -> None:
    rig = Rig(Mode.AUDIO)
    for n in (0, 1, 3):
        rig.hear(n)
    assert rig.stamps == [0, 960]
    due = rig.backend.deadline
    assert 0.06 < due <= 0.06 + 0.06
    rig.backend.timer(due)
    assert rig.stamps == [0, 960, 1920, 2880]
    assert rig.backend.deadline == math.inf


def test_a_pause_stays_a_pause() -> None:
    rig = Rig(Mode.AUDIO)
    rig.hear(0)
    packet = Packet(111, 1, 50 * 960, 1, rig.packets[1])
    rig.backend.receive(packet, True, 1.0)
    assert rig.stamps == [0, 50 * 960]
    assert [marker for *_, marker in rig.outlet.sent] == [True, True]


def test_reordered_packets_go_out_in_order_once() -> None:
    rig = Rig(Mode.AUDIO)
    for n in (0, 2, 1, 1, 3):
        rig.hear(n, at=n * 0.02)
    assert rig.stamps == [0, 960, 1920, 2880]


@pytest.mark.parametrize("ms", [10, 40, 60])
def test_packets_of_other_lengths(ms: int) -> None:
    rig = Rig(Mode.AUDIO, ms)
    for n in range(10):
        rig.hear(n)
    assert rig.stamps == [n * 48 * ms for n in range(10)]


def test_mirrors_in_opus_mode() -> None:
    outlet = Outlet()
    mirror = make(outlet, Mode.OPUS)
    mirror.receive(Packet(111, 0, 7, 1, b"\xf8whatever", True), True, 0.0)
    mirror.receive(Packet(111, 0, 7, 1, b"late"), False, 0.0)
    mirror.receive(Packet(111, 1, 7, 1, b""), True, 0.0)
    assert outlet.sent == [(b"\xf8whatever", 7, True)]
    assert mirror.statistics() == {}
    assert mirror.deadline == math.inf
    mirror.timer(1.0)
    mirror.loss(1.0, 1.0)


def test_what_is_no_opus_is_counted() -> None:
    rig = Rig(Mode.AUDIO)
    rig.hear(0, payload=b"\xff\xff\xff")
    assert rig.backend.statistics()["undecodable"] == 1


def test_plays_what_it_hears_and_no_pauses() -> None:
    rig = Rig(Mode.PACED)
    assert rig.outlet.rate == RATE
    rig.hear(0)
    rig.backend.receive(Packet(111, 1, 50 * 960, 1, rig.packets[1]), True, 1.0)
    assert [len(samples) for samples in rig.outlet.played] == [960, 960]
    assert not rig.outlet.sent
    rig.backend.loss(0.5, 1.0)


@pytest.mark.parametrize("mode", list(Mode))
def test_says_nothing_while_paused_or_closed(mode: Mode) -> None:
    rig = Rig(mode)

    def said() -> int:
        return len(rig.outlet.sent) + len(rig.outlet.played)

    rig.hear(0)
    rig.hear(2)
    before = said()
    rig.backend.pause()
    rig.backend.timer(10.0)
    rig.hear(3)
    assert said() == before
    assert rig.backend.deadline == math.inf
    rig.backend.resume()
    rig.hear(3, at=0.2)
    assert said() > before
    rig.backend.close()
    before = said()
    rig.hear(4)
    assert said() == before


def test_loss_turns_fec_on_for_a_while() -> None:
    rig = Rig(Mode.AUDIO)
    rig.backend.loss(0.02, 101.0)
    assert rig.backend.statistics()["fec"]
    rig.backend.loss(0.0, 101.0 + FEC_S)
    assert not rig.backend.statistics()["fec"]
