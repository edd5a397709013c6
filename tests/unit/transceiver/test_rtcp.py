import contextlib

import pytest
from aiortc import rtp as wire
from hypothesis import given
from hypothesis import strategies as st

from transceiver.rtcp import Reporter
from transceiver.rtp import FRAME, Reception

OURS, THEIRS = 0x0A0A0A0A, 0x0B0B0B0B


def reception(numbers: list[int]) -> Reception:
    source = Reception()
    for number in numbers:
        source.add(number, number * FRAME, number * 0.02)
    return source


def parsed(compound: bytes) -> list[wire.AnyRtcpPacket]:
    return wire.RtcpPacket.parse(compound)


def test_a_receiver_report_while_nothing_was_sent() -> None:
    first, names = parsed(Reporter(OURS, "us").report({THEIRS: reception([1, 2, 4])}, 10.0))
    assert isinstance(first, wire.RtcpRrPacket)
    assert (first.ssrc, first.reports[0].ssrc) == (OURS, THEIRS)
    assert first.reports[0].packets_lost == 1
    assert first.reports[0].fraction_lost == 64  # a quarter of 256
    assert first.reports[0].highest_sequence == 4
    assert isinstance(names, wire.RtcpSdesPacket)
    assert names.chunks[0].items == [(1, b"us")]


def test_a_sender_report_says_what_was_sent_and_where_its_clock_is() -> None:
    reporter = Reporter(OURS, "us")
    reporter.sent(40, 96000, 10.0)
    reporter.sent(60, 96960, 10.02)
    first = parsed(reporter.report({}, 10.52))[0]
    assert isinstance(first, wire.RtcpSrPacket)
    assert (first.sender_info.packet_count, first.sender_info.octet_count) == (2, 100)
    assert first.sender_info.rtp_timestamp == 96960 + 24000


def test_the_fraction_lost_is_that_since_the_last_report() -> None:
    reporter, source = Reporter(OURS, "us"), reception([1, 2, 4])
    reporter.report({THEIRS: source}, 1.0)
    for number in (5, 6, 7, 8):
        source.add(number, number * FRAME, number * 0.02)
    block = parsed(reporter.report({THEIRS: source}, 2.0))[0].reports[0]  # type: ignore[union-attr]
    assert (block.fraction_lost, block.packets_lost) == (0, 1)


def test_two_reporters_measure_their_round_trip() -> None:
    us, them = Reporter(OURS, "us"), Reporter(THEIRS, "them")
    us.sent(1, 0, 100.0)
    them.learn(us.report({}, 100.0), 5000.03)  # 30 ms on the way, other epoch
    back = them.report({OURS: reception([1])}, 5001.03)
    learned = us.learn(back, 101.05)  # 20 ms back
    assert learned.rtt == pytest.approx(0.05, abs=0.001)
    assert learned.fraction_lost == 0
    assert not learned.bye


def test_no_round_trip_without_a_report_of_ours_and_none_below_zero() -> None:
    us, them = Reporter(OURS, "us"), Reporter(THEIRS, "them")
    assert us.learn(them.report({OURS: reception([1])}, 1.0), 1.0).rtt is None
    us.sent(1, 0, 100.0)
    them.learn(us.report({}, 100.0), 7.0)
    assert us.learn(them.report({OURS: reception([1])}, 8.0), 100.5).rtt is None


def test_bye() -> None:
    assert Reporter(OURS, "us").learn(Reporter(THEIRS, "them").bye(), 1.0).bye


def test_reports_of_other_sources_are_not_ours() -> None:
    them = Reporter(THEIRS, "them")
    assert Reporter(OURS, "us").learn(them.report({7: reception([1, 3])}, 1.0), 1.0) == (
        Reporter(OURS, "us").learn(b"", 1.0)
    )


@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda b: b"\x81\xc8\x00\x0c" + b))
def test_learn_raises_only_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        Reporter(OURS, "us").learn(data, 1.0)
