import math
import weakref

import pytest

from tests.unit.transceiver.backends.around import Peer
from transceiver import rtp
from transceiver.audio.pacer import Pacer
from transceiver.backends.echo import Mode, make
from transceiver.counts import Counts
from transceiver.lateness import Lateness
from transceiver.media import FIRST_REPORT_S, MAX_SOURCES, REPORT_EVERY_S, Media
from transceiver.rtcp import Reporter
from transceiver.rtp import Packet

THEIRS, OURS = 0x11, 0x22
FRAME = bytes([0xF8, 0xFF, 0xFE])  # Opus: 20 ms of silence


class Rig:
    def __init__(self, sends: bool = True, mode: Mode = Mode.OPUS) -> None:
        self.now = 10.0
        self.pacer = Pacer(lambda: self.now, Lateness())
        self.backend = make(Peer(), mode)
        self.crashes = 0
        self.sent: list[Packet] = []
        self.reports: list[bytes] = []
        self.counts = Counts()
        self.media = Media(
            ssrc=OURS,
            payload_type=111,
            cname="us",
            first_sequence=0xFFFE,
            first_timestamp=0xFFFFFFFF,
            sends=sends,
            backend=self.backend,
            pacer=self.pacer,
            counts=self.counts,
            clock=lambda: self.now,
            transmit=lambda packet: self.sent.append(rtp.parse(packet)),
            transmit_rtcp=self.reports.append,
            crash=self._crash,
        )

    def _crash(self) -> None:
        self.crashes += 1

    def run(self, seconds: float) -> None:
        """Let the pacer's time pass."""
        for _ in range(round(seconds * 500)):
            self.now += 0.002
            self.pacer.tick(self.now)

    def take(self, n: int, payload: bytes = b"opus", kind: int = 111, ssrc: int = THEIRS) -> bool:
        data = rtp.build(Packet(kind, n, n * 960, ssrc, payload))
        packet, newest, _ = self.media.count(data, self.now)
        assert packet is not None
        self.media.deliver(packet, newest, self.now)
        return newest


def test_numbers_wrap_and_go_on() -> None:
    rig = Rig()
    for n in range(4):
        rig.take(n)
    assert [packet.sequence for packet in rig.sent] == [0xFFFE, 0xFFFF, 0, 1]
    assert {packet.ssrc for packet in rig.sent} == {OURS}
    assert (rig.media.packets_up, rig.media.packets_down) == (4, 4)
    assert (rig.media.bytes_up, rig.media.bytes_down) == (16, 16)
    assert (rig.counts.packets_up, rig.counts.bytes_down) == (4, 16)


def test_a_new_source_is_said_once() -> None:
    rig = Rig()
    data = rtp.build(Packet(111, 1, 960, THEIRS, b"x"))
    assert [rig.media.count(data, 1.0)[2] for _ in range(2)] == [THEIRS, None]


def test_other_payload_types_and_empty_packets_reach_no_backend() -> None:
    rig = Rig()
    rig.take(1, kind=13)
    rig.take(2, payload=b"")
    assert not rig.sent
    assert rig.counts.dropped == {"wrong_payload_type": 1}


def test_what_is_no_rtp_is_counted() -> None:
    rig = Rig()
    assert rig.media.count(b"\x80", 1.0) == (None, False, None)
    assert rig.counts.dropped == {"truncated": 1}


def test_sources_are_bounded() -> None:
    rig = Rig()
    for ssrc in range(MAX_SOURCES):
        rig.take(1, ssrc=ssrc)
    assert rig.media.admits(0)
    assert not rig.media.admits(99)


@pytest.mark.parametrize("reason", ["direction", "away"])
def test_nothing_is_sent_to_who_does_not_listen(reason: str) -> None:
    rig = Rig(sends=reason != "direction")
    if reason == "away":
        rig.media.pause()
        rig.media.send(b"x", 0, False)
    rig.take(1)
    assert not rig.sent
    rig.media.resume()
    rig.take(2)
    assert len(rig.sent) == (reason == "away")


def test_reports_come_at_their_times_and_not_while_away() -> None:
    rig = Rig()
    rig.take(1)
    due: list[float] = []
    for tenth in range(100):
        rig.now = 10.0 + tenth / 10
        rig.media.timer(rig.now)
        if len(rig.reports) > len(due):
            due.append(rig.now)
    assert due == pytest.approx([10 + FIRST_REPORT_S + n * REPORT_EVERY_S for n in range(3)])
    rig.media.pause()
    rig.media.timer(100.0)
    assert len(rig.reports) == 3


def test_a_report_of_loss_reaches_the_backend() -> None:
    rig, them = Rig(), Reporter(THEIRS, "them")
    losses: list[float] = []
    rig.backend.loss = lambda fraction, now: losses.append(fraction)  # type: ignore[method-assign]
    source = rtp.Reception()
    source.add(1, 0, 1.0)
    source.add(3, 0, 1.0)
    source.add(4, 0, 1.0)
    rig.media.receive_rtcp(them.report({OURS: source}, 5.0), 5.0)
    assert losses == [0.25]
    rig.media.receive_rtcp(b"\x80\xc9\xff\xff", 5.0)
    assert rig.counts.dropped == {"bad_rtcp": 1}


def test_says_goodbye() -> None:
    rig = Rig()
    rig.take(1)
    rig.take(3)
    rig.media.close()
    assert Reporter(THEIRS, "them").learn(rig.reports[-1], 1.0).bye
    assert rig.counts.lost == 1
    rig.take(4)
    assert len(rig.sent) == 2


def test_a_backend_that_plays_is_paced_and_goes_on_after_being_away() -> None:
    rig = Rig(mode=Mode.PACED)
    rig.run(0.2)
    count = len(rig.sent)
    assert count in (10, 11)
    first = rig.sent[0]
    assert [p.timestamp for p in rig.sent] == [
        (0xFFFFFFFF + n * 960) & 0xFFFFFFFF for n in range(count)
    ]
    rig.media.pause()
    rig.run(1.0)
    assert len(rig.sent) == count
    rig.media.resume()
    rig.run(0.1)
    again = rig.sent[count]
    assert again.sequence == (first.sequence + count) & 0xFFFF
    assert (again.timestamp - first.timestamp) & 0xFFFFFFFF == pytest.approx(
        (count + 50) * 960, abs=960
    )
    rig.media.close()
    assert len(rig.pacer) == 0


def test_a_backend_learns_what_is_on_the_wire() -> None:
    rig = Rig()
    frames: list[tuple[float, int]] = []
    assert rig.media.sent == 0
    rig.media.open(24000, lambda now: frames.append((now, rig.media.sent)))
    assert rig.media.play(bytes(2 * 1000))
    assert rig.media.sent == 0
    rig.run(0.2)
    assert [sent for _, sent in frames] == [480, 960, 1000]
    assert frames[-1][0] <= rig.now
    rig.media.play(bytes(2 * 1000))
    assert rig.media.flush() == 1000
    assert rig.media.sent == 1000
    rig.media.close()
    assert rig.media.sent == 0


def test_silence_before_the_client_listens_costs_no_packets() -> None:
    rig = Rig(sends=False, mode=Mode.PACED)
    rig.run(0.2)
    assert not rig.sent


def test_a_fault_in_a_slot_ends_the_call() -> None:
    rig = Rig(mode=Mode.PACED)
    rig.media._transmit = rig.sent.remove  # type: ignore[assignment]
    rig.run(0.1)
    assert rig.crashes == 1
    assert len(rig.pacer) == 0


def test_it_is_due_when_the_backend_is() -> None:
    rig = Rig(mode=Mode.AUDIO)
    rig.take(1, payload=FRAME)
    report = rig.media.deadline
    rig.take(3, payload=FRAME)
    assert rig.now < rig.media.deadline < report
    rig.now = rig.media.deadline
    rig.media.timer(rig.now)
    assert len(rig.sent) == 3
    assert rig.media.deadline == report


def test_statistics_are_in_one_place() -> None:
    rig, them = Rig(mode=Mode.AUDIO), Reporter(THEIRS, "them")
    for n in (1, 2, 4, 5, 6):
        rig.now = 10 + n * 0.02
        rig.take(n, payload=FRAME)
    rig.media.timer(20.0)
    them.learn(rig.reports[-1], 20.0)
    rig.media.receive_rtcp(them.report({OURS: rtp.Reception()}, 20.5), 20.6)
    shown = rig.media.statistics()
    assert shown["lost"] == 1
    assert (shown["packets_up"], shown["packets_down"]) == (5, 6)
    assert shown["rtt_ms"] == 100
    assert shown["fraction_lost"] == 0
    assert shown["concealed"] == 1
    assert shown["jitter_ms"] == 0
    assert shown["fec"] is False


@pytest.mark.parametrize("mode", [Mode.AUDIO, Mode.PACED])
def test_a_closed_call_still_tells_its_statistics_and_holds_no_codec(mode: Mode) -> None:
    rig = Rig(mode=mode)
    for n in (1, 3, 4):
        rig.take(n, payload=FRAME)
        rig.now += 0.05
    held = weakref.ref(rig.backend._mouth._uplink)  # type: ignore[attr-defined]
    before = rig.media.statistics()
    rig.media.close()
    rig.media.close()
    rig.backend.close()
    assert rig.media.statistics() == before
    assert before["concealed"] == rig.counts.uplink["concealed"] == 1
    assert rig.counts.lost == 1
    assert held() is None
    assert rig.media.deadline == math.inf
    assert not rig.media.play(b"sound")
    assert rig.media.flush() == 0
    sent = len(rig.sent)
    rig.run(0.1)
    assert len(rig.sent) == sent
