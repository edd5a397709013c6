import itertools
import struct

from hypothesis import given
from hypothesis import strategies as st

from transceiver.flight import DATAGRAM_SIZE, REPLAY_AFTER, LastFlight, datagrams


def record(size: int) -> bytes:
    return struct.pack("!BHHIHH", 22, 0xFEFD, 0, 0, 0, size) + bytes(size)


RECORDS = st.lists(st.integers(0, 1500).map(record), max_size=12)


@given(RECORDS)
def test_nothing_is_lost_and_no_record_is_cut(records: list[bytes]) -> None:
    packed = datagrams(b"".join(records))
    assert b"".join(packed) == b"".join(records)
    left = list(records)
    for datagram in packed:
        content = b""
        while len(content) < len(datagram):
            content += left.pop(0)
        assert content == datagram
        assert len(datagram) <= DATAGRAM_SIZE or datagram in records


@given(RECORDS)
def test_what_fits_together_travels_together(records: list[bytes]) -> None:
    packed = datagrams(b"".join(records))
    for first, second in itertools.pairwise(packed):
        head = 13 + int.from_bytes(second[11:13], "big")
        assert len(first) + head > DATAGRAM_SIZE


def test_our_size_fits_a_path_of_1280_bytes() -> None:
    ipv6, udp = 40, 8  # bytes
    assert 1200 <= DATAGRAM_SIZE <= 1280 - ipv6 - udp


def test_a_small_flight_is_one_datagram() -> None:
    flight = b"".join(record(size) for size in (108, 364, 123, 60, 12))
    assert datagrams(flight) == [flight]


def test_half_a_record_at_the_end_is_kept_as_it_is() -> None:
    assert datagrams(record(10) + b"\x16\xfe") == [record(10) + b"\x16\xfe"]


def test_repeats_the_flight_at_its_times_and_then_no_more() -> None:
    flight = LastFlight()
    flight.wrote([b"a", b"b"], 5.0)
    sent = [
        round(n / 100, 2) for n in range(300) if flight.due(5.0 + n / 100 + 1e-6) == [b"a", b"b"]
    ]
    assert tuple(sent) == REPLAY_AFTER


def test_something_newer_replaces_it() -> None:
    flight = LastFlight()
    flight.wrote([b"old"], 5.0)
    flight.wrote([b"new"], 5.15)
    assert flight.due(5.2) == []
    assert flight.due(5.26) == [b"new"]


def test_nothing_after_it_arrived() -> None:
    flight = LastFlight()
    flight.wrote([b"a"], 5.0)
    flight.arrived()
    assert flight.due(6.0) == []


def test_nothing_before_the_first() -> None:
    assert LastFlight().due(100.0) == []
