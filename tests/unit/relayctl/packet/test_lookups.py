from typing import NamedTuple

import pytest

from relayctl import cached_flow
from relayctl.flow import FlowKey
from relayctl.packet import lookups
from relayctl.packet.lookups import ABSENT_NS, HINTED_NS, MAX_HELD, MAX_SIZE, WAIT_NS, Lookups
from relayctl.reason import Reason

SSRC = 0x1234


class Packet(NamedTuple):
    key: FlowKey
    payload: bytes = b"\x80"


def packet(port: int = 4000, size: int = 1) -> Packet:
    return Packet(FlowKey(("203.0.113.5", port), 1), bytes(size))


@pytest.fixture
def table() -> Lookups[Packet]:
    return Lookups()


def test_a_client_is_asked_for_once_and_its_packets_come_back(table: Lookups[Packet]) -> None:
    first, second = packet(), packet(size=2)
    assert table.hold(first, SSRC, 0) is None
    assert table.hold(second, 0, 1) is None
    assert cached_flow.read_wanted(b"".join(table.unasked())) == [(first.key, SSRC)]
    assert table.unasked() == []
    assert table.release(first.key, 2) == [first, second]
    assert table.release(first.key, 2) == []


def test_an_answered_client_is_not_asked_for_again_at_once(table: Lookups[Packet]) -> None:
    table.hold(packet(), SSRC, 0)
    table.release(packet().key, 10)
    assert table.hold(packet(), SSRC, 9 + ABSENT_NS) is Reason.SLOW_ORPHAN
    assert table.hold(packet(), SSRC + 1, 11) is None  # another source, which Redis may know
    table.release(packet().key, 12)
    assert table.hold(packet(), SSRC, 10 + ABSENT_NS) is None


def test_packets_wait_for_a_while_only(table: Lookups[Packet]) -> None:
    table.hold(packet(1), 0, 0)
    table.hold(packet(2), 0, 5)
    assert table.deadline() == WAIT_NS
    assert table.late(WAIT_NS - 1) == []
    assert table.late(WAIT_NS) == [packet(1)]
    assert table.deadline() == WAIT_NS + 5
    assert table.late(WAIT_NS + 5) == [packet(2)]
    assert table.deadline() is None


def test_everything_has_a_bound(table: Lookups[Packet], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "MAX_WAITING", 2)
    monkeypatch.setattr(lookups, "MAX_ABSENT", 2)
    monkeypatch.setattr(lookups, "MAX_HINTED", 2)
    assert table.hold(packet(1, MAX_SIZE + 1), 0, 0) is Reason.SLOW_LOOKUPS_FULL
    held = [table.hold(packet(1), 0, 0) for _ in range(MAX_HELD + 1)]
    assert held == [None] * MAX_HELD + [Reason.SLOW_LOOKUPS_FULL]
    assert table.hold(packet(2), 0, 0) is None
    assert table.hold(packet(3), 0, 0) is Reason.SLOW_LOOKUPS_FULL
    for port in (1, 2):
        table.release(packet(port).key, 0)
    table.hold(packet(3), 0, 0)
    table.release(packet(3).key, 0)
    assert table.hold(packet(1), 0, 1) is None  # forgotten for the third
    for ssrc in (1, 2, 3):
        table.learn(1, ssrc, ("10.2.0.2", 5000), 0)
    assert [table.hinted(1, ssrc, 1) is None for ssrc in (1, 2, 3)] == [True, False, False]


def test_an_rtp_source_is_known_for_a_while_at_its_vip(table: Lookups[Packet]) -> None:
    table.learn(1, SSRC, ("10.2.0.2", 5000), 0)
    assert table.hinted(1, SSRC, HINTED_NS - 1) == ("10.2.0.2", 5000)
    assert table.hinted(1, SSRC, HINTED_NS) is None
    assert table.hinted(2, SSRC, 0) is None
