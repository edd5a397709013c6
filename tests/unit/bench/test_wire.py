import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench import wire
from tests.bench.wire import Family, Frame
from tests.kernel.packets import checksum, spp_header, take_apart

NUMBERS = st.integers(0, (1 << 20) - 1)
STAMPS = st.integers(0, (1 << 63) - 1)
FAMILIES = st.sampled_from(wire.FAMILIES)


def v6_sum_is_right(data: bytes) -> bool:
    """RFC 8200 section 8.1: over pseudo header and datagram it comes out as 0."""
    addresses, datagram = data[22:54], data[54:]
    return checksum(addresses + struct.pack("!IHBB", len(datagram), 0, 0, 17) + datagram) == 0


@given(NUMBERS, STAMPS)
def test_a_client_of_ipv4_has_its_address_and_right_checksums(number: int, stamp: int) -> None:
    frame = wire.from_client(4, wire.rtp())
    found = take_apart(wire.finished(frame, number, 4, stamp))  # checks both checksums
    assert (found.source, found.destination) == (wire.client(number, 4), wire.VIP[4])
    assert found.payload[wire.STAMP :][:8] == struct.pack("<Q", stamp)
    assert found.sum


@given(NUMBERS, STAMPS)
def test_a_client_of_ipv6_has_its_address_and_a_right_checksum(number: int, stamp: int) -> None:
    data = wire.finished(wire.from_client(6, wire.rtp()), number, 6, stamp)
    host, port = wire.client(number, 6)
    assert ipaddress.IPv6Address(data[22:38]) == ipaddress.IPv6Address(host)
    assert int.from_bytes(data[54:56], "big") == port
    assert v6_sum_is_right(data)


@given(NUMBERS, STAMPS, FAMILIES, FAMILIES)
def test_the_endpoint_says_the_client_in_the_spp_header(
    number: int, stamp: int, outer: Family, inner: Family
) -> None:
    frame = wire.from_endpoint(outer, inner, wire.rtp())
    data = wire.finished(frame, number, outer, stamp)
    begin = frame.head - 38
    if outer == 4:
        assert data[begin : begin + 38] == spp_header(wire.client(number, 4), wire.VIP[4])
    else:
        assert (
            data[begin + 2 : begin + 18] == ipaddress.ip_address(wire.client(number, 6)[0]).packed
        )
        assert data[begin + 34 : begin + 36] == wire.client(number, 6)[1].to_bytes(2, "big")
    if inner == 4:
        assert take_apart(data).source == ("10.2.0.2", wire.ENDPOINT_PORT)
    else:
        assert v6_sum_is_right(data)


@given(NUMBERS)
def test_a_plain_endpoint_sends_to_the_client(number: int) -> None:
    found = take_apart(wire.finished(wire.from_plain_endpoint(4, wire.rtp()), number, 4))
    assert found.destination == wire.client(number, 4)
    data = wire.finished(wire.from_plain_endpoint(6, wire.rtp()), number, 6)
    assert ipaddress.ip_address(data[38:54]) == ipaddress.ip_address(wire.client(number, 6)[0])
    assert v6_sum_is_right(data)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(wire.from_client(4, wire.rtp()), id="ipv4"),
        pytest.param(wire.from_client(6, wire.rtp()), id="ipv6"),
        pytest.param(wire.from_endpoint(6, 6, wire.rtp()), id="spp"),
    ],
)
def test_all_that_varies_is_in_the_head_that_is_written_anew_but_the_stamp(frame: Frame) -> None:
    assert frame.client_at + 4 <= frame.head
    assert frame.port_at + 2 <= frame.head
    assert frame.sum_at + 2 <= frame.head <= frame.stamp_at
    assert frame.head <= 104  # the template in generator.c


@given(NUMBERS)
def test_clients_are_numbered_both_ways(number: int) -> None:
    host, port = wire.client(number, 4)
    packed = ipaddress.IPv4Address(host).packed
    assert wire.number_of(packed, port.to_bytes(2, "big")) == number


def test_channel_data_has_channel_and_length_in_front() -> None:
    assert wire.channel_data(b"abcd", 0x4001) == b"\x40\x01\x00\x04abcd"
