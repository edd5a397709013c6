import pytest

from transceiver import rtp
from transceiver.backends.base import Outlet
from transceiver.backends.echo import Echo, Mode
from transceiver.counts import Counts
from transceiver.media import FIRST_REPORT_S, MAX_SOURCES, REPORT_EVERY_S, Media
from transceiver.rtcp import Reporter
from transceiver.rtp import Packet

THEIRS, OURS = 0x11, 0x22


class Rig:
    def __init__(self, sends: bool = True) -> None:
        self.now = 10.0
        self.sent: list[Packet] = []
        self.reports: list[bytes] = []
        self.counts = Counts()
        self.media = Media(
            ssrc=OURS,
            payload_type=111,
            cname="us",
            first_sequence=0xFFFE,
            sends=sends,
            make_backend=self._make,
            counts=self.counts,
            clock=lambda: self.now,
            transmit=lambda packet: self.sent.append(rtp.parse(packet)),
            transmit_rtcp=self.reports.append,
        )

    def _make(self, outlet: Outlet) -> Echo:
        self.echo = Echo(outlet, Mode.OPUS)
        return self.echo

    def take(self, n: int, payload: bytes = b"opus", kind: int = 111, ssrc: int = THEIRS) -> bool:
        received = self.media.count(rtp.build(Packet(kind, n, n * 960, ssrc, payload)), self.now)
        self.media.deliver(received)
        return received.newest


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
    assert rig.media.count(data, 1.0).new_source == THEIRS
    assert rig.media.count(data, 1.0).new_source is None


def test_other_payload_types_and_empty_packets_reach_no_backend() -> None:
    rig = Rig()
    rig.take(1, kind=13)
    rig.take(2, payload=b"")
    assert not rig.sent
    assert rig.counts.dropped == {"wrong_payload_type": 1}


def test_what_is_no_rtp_is_counted() -> None:
    rig = Rig()
    assert not rig.media.count(b"\x80", 1.0).newest
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
    rig.echo.loss = lambda fraction, now: losses.append(fraction)  # type: ignore[method-assign]
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
