import pytest

from relayctl.wire import spp
from tests.bench_signaling.own_share import Share

HEADER = spp.encode(spp.Header(("198.51.100.4", 6000), ("203.0.113.10", 3478)))
OTHER = spp.encode(spp.Header(("198.51.100.5", 6000), ("203.0.113.10", 3478)))


def stun(kind: int, transaction: bytes) -> bytes:
    return kind.to_bytes(2, "big") + bytes(6) + transaction


def record(kind: int, message: int) -> bytes:
    return bytes([kind]) + bytes(12) + bytes([message])


def test_a_check_is_answered_by_its_own_transaction() -> None:
    share = Share()
    share.see(HEADER + stun(1, b"a" * 12), True, 10.0)
    share.see(HEADER + stun(1, b"b" * 12), True, 10.001)
    share.see(HEADER + stun(0x101, b"b" * 12), False, 10.002)
    share.see(HEADER + stun(0x101, b"a" * 12), False, 10.005)
    assert share.check_ms == pytest.approx([1.0, 5.0])


def test_a_repeated_question_counts_from_the_first() -> None:
    share = Share()
    for now in (1.0, 1.05):
        share.see(HEADER + record(22, 1), True, now)
    share.see(HEADER + record(22, 2), False, 1.1)
    share.see(HEADER + record(22, 11), False, 1.2)  # the flight goes on
    assert share.flight_ms == pytest.approx([100.0])


def test_a_hello_is_answered_by_dtls_to_the_same_client() -> None:
    share = Share()
    share.see(HEADER + record(22, 1), True, 1.0)
    share.see(OTHER + record(22, 2), False, 1.001)
    share.see(HEADER + stun(0x101, b"a" * 12), False, 1.002)
    share.see(HEADER + record(22, 16), True, 1.003)  # no hello, and no answer
    assert not share.flight_ms
    share.see(HEADER + record(22, 2), False, 1.004)
    assert share.flight_ms == pytest.approx([4.0])


def test_what_we_ask_is_no_question() -> None:
    share = Share()
    share.see(HEADER + record(22, 1), False, 0.1)
    share.see(HEADER + record(22, 16), False, 0.2)
    share.see(HEADER + stun(1, b"a" * 12), False, 1.0)
    share.see(HEADER + stun(0x101, b"a" * 12), True, 1.5)
    share.see(b"no header", True, 2.0)
    assert (share.check_ms, share.flight_ms) == ([], [])
