import math

import numpy as np
import pytest

from tests.unit.transceiver.audio.test_opus import frames, values, voice
from tests.unit.transceiver.backends.around import Peer, Wire
from transceiver.audio.opus import Decoder, Encoder
from transceiver.audio.voice import FEC_S
from transceiver.backends.base import Backend
from transceiver.backends.echo import RATE, Mirror, Mode, Player, Repeater, make
from transceiver.backends.keeper import FINISH_S
from transceiver.lifecycle import End
from transceiver.rtp import Packet

SESSION_WARNS = 3540.0  # when nothing else is due


class Rig:
    """A backend that hears packets of 20 ms at their times."""

    def __init__(self, mode: Mode, ms: int = 20) -> None:
        self.peer, self.outlet = Peer(), Wire(0.0)
        self.backend: Backend = make(self.peer, mode)
        self.backend.begin(self.outlet, 0.0)
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
        return [stamp for _, stamp, _ in self.outlet.packets]


@pytest.mark.parametrize(
    ("mode", "kind"), [("audio", Repeater), ("opus", Mirror), ("paced", Player)]
)
def test_modes(mode: str, kind: type) -> None:
    assert isinstance(make(Peer(), Mode(mode))._mouth, kind)  # type: ignore[attr-defined]


def test_answers_each_packet_at_once_with_sound() -> None:
    rig, decoder = Rig(Mode.AUDIO), Decoder(RATE)
    for n in range(50):
        rig.hear(n)
        assert len(rig.outlet.packets) == n + 1
    assert rig.stamps == [n * 960 for n in range(50)]
    assert [marker for *_, marker in rig.outlet.packets] == [True] + [False] * 49
    heard = values(b"".join(decoder.decode(payload) for payload, *_ in rig.outlet.packets))
    said = values(rig.said)[: len(heard) - 960]
    assert max(np.corrcoef(heard[lag : lag + len(said)], said)[0, 1] for lag in range(960)) > 0.5


def test_a_lost_packet_is_repaired_in_its_place() -> None:
    rig = Rig(Mode.AUDIO)
    for n in range(20):
        if n != 10:
            rig.hear(n)
    assert rig.stamps == [n * 960 for n in range(20)]
    assert not any(marker for *_, marker in rig.outlet.packets[1:])
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
    assert rig.backend.deadline == SESSION_WARNS


def test_a_pause_stays_a_pause() -> None:
    rig = Rig(Mode.AUDIO)
    rig.hear(0)
    packet = Packet(111, 1, 50 * 960, 1, rig.packets[1])
    rig.backend.receive(packet, True, 1.0)
    assert rig.stamps == [0, 50 * 960]
    assert [marker for *_, marker in rig.outlet.packets] == [True, True]


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
    outlet = Wire()
    mirror = make(Peer(), Mode.OPUS)
    mirror.begin(outlet, 0.0)
    mirror.receive(Packet(111, 0, 7, 1, b"\xf8whatever", True), True, 0.0)
    mirror.receive(Packet(111, 0, 7, 1, b"late"), False, 0.0)
    mirror.receive(Packet(111, 1, 7, 1, b""), True, 0.0)
    assert outlet.packets == [(b"\xf8whatever", 7, True)]
    assert mirror.statistics() == {}
    assert mirror.deadline == SESSION_WARNS
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
    assert rig.outlet.queued == 960
    assert not rig.outlet.packets
    rig.backend.loss(0.5, 1.0)


@pytest.mark.parametrize("mode", list(Mode))
def test_says_nothing_while_paused_or_closed(mode: Mode) -> None:
    rig = Rig(mode)

    def said() -> int:
        return len(rig.outlet.packets) + rig.outlet.queued

    rig.hear(0)
    rig.hear(2)
    before = said()
    rig.backend.pause()
    rig.backend.timer(10.0)
    rig.hear(3)
    assert said() == before
    assert rig.backend.deadline == SESSION_WARNS
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


@pytest.mark.parametrize("mode", list(Mode))
def test_it_has_a_session_that_hears_and_never_responds(mode: Mode) -> None:
    rig = Rig(mode)
    assert rig.peer.types == ["session.created"]
    rig.backend.event({"type": "session.update", "session": {"type": "realtime"}}, 1.0)
    rig.backend.event({"type": "response.create", "event_id": "mine"}, 1.0)
    assert rig.peer.types[1:] == ["session.updated", "error"]
    assert rig.peer.said[-1]["error"]["code"] == "responses_unsupported"
    assert rig.peer.said[-1]["error"]["event_id"] == "mine"


@pytest.mark.parametrize("mode", list(Mode))
def test_the_session_ends_the_call_at_its_length(mode: Mode) -> None:
    rig = Rig(mode)
    assert rig.backend.deadline == SESSION_WARNS
    rig.backend.timer(SESSION_WARNS)
    assert not rig.peer.ended
    rig.backend.timer(rig.backend.deadline)
    assert [event["error"]["code"] for event in rig.peer.said[1:]] == [
        "session_expiring",
        "session_expired",
    ]
    assert rig.peer.ended == [End.EXPIRED]


@pytest.mark.parametrize("mode", [Mode.AUDIO, Mode.OPUS])
def test_nothing_waits_for_the_end(mode: Mode) -> None:
    rig = Rig(mode)
    rig.hear(0)
    rig.backend.finish(End.HANGUP, 1.0)
    assert rig.peer.ended == [End.HANGUP]


def test_what_is_played_is_heard_to_its_end() -> None:
    rig = Rig(Mode.PACED)
    for n in range(10):
        rig.hear(n)
    rig.backend.finish(End.SHUTDOWN, rig.outlet.now)
    rig.hear(10)
    rig.backend.pause()
    rig.backend.resume()
    rig.hear(11)
    assert rig.outlet.queued == 10 * RATE // 50
    rig.outlet.run(0.15)
    assert not rig.peer.ended
    rig.outlet.run(1.0)
    assert rig.peer.ended == [End.SHUTDOWN]
    assert rig.outlet.queued == 0


def test_who_is_away_is_not_waited_for_longer_than_ten_seconds() -> None:
    rig = Rig(Mode.PACED)
    rig.hear(0)
    rig.outlet.away = True
    rig.backend.finish(End.SHUTDOWN, 1.0)
    rig.backend.timer(rig.backend.deadline)
    assert rig.peer.ended == [End.SHUTDOWN]
    assert FINISH_S == 10.0


@pytest.mark.parametrize("mode", list(Mode))
def test_a_call_that_ends_before_it_has_begun(mode: Mode) -> None:
    peer = Peer()
    backend = make(peer, mode)
    assert backend.deadline == math.inf
    backend.finish(End.HANGUP, 1.0)
    assert peer.ended == [End.HANGUP]
    backend.close()
