import struct

from hypothesis import given
from hypothesis import strategies as st

from relayctl.packet.raw_datagram import build, ones_complement
from relayctl.wire.address import Address, pack_host
from tests.unit.relayctl.packets import CLIENT, CLIENT_6, ENDPOINT, ENDPOINT_6


def slow_checksum(data: bytes) -> int:
    """RFC 1071 as it is written."""
    total = 0
    for (word,) in struct.iter_unpack("!H", data + bytes(len(data) % 2)):
        total += word
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


@given(st.binary(max_size=100) | st.integers(0, 40).map(lambda size: b"\xff" * size))
def test_the_checksum_is_the_internet_checksum(data: bytes) -> None:
    assert ones_complement(data) == slow_checksum(data)


def test_rfc1071_example() -> None:
    assert ones_complement(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2


def check(datagram: bytes, client: Address, endpoint: Address, payload: bytes) -> None:
    if datagram[0] >> 4 == 4:
        ports, addresses = 20, datagram[12:20]
        assert slow_checksum(datagram[:20]) == 0
        assert struct.unpack_from("!H", datagram, 2)[0] == len(datagram)
        assert (datagram[0], datagram[8], datagram[9]) == (0x45, 64, 17)
        source, destination = pack_host(client[0])[12:], pack_host(endpoint[0])[12:]
    else:
        ports, addresses = 40, datagram[8:40]
        assert datagram[:4] == bytes.fromhex("60000000")
        assert struct.unpack_from("!H", datagram, 4)[0] == len(datagram) - 40
        assert (datagram[6], datagram[7]) == (17, 64)
        source, destination = pack_host(client[0]), pack_host(endpoint[0])
    assert addresses == source + destination
    udp = datagram[ports:]
    assert struct.unpack_from("!HHH", udp) == (client[1], endpoint[1], len(udp))
    assert udp[8:] == payload
    assert udp[6:8] != bytes(2)
    assert slow_checksum(addresses + struct.pack("!IHBB", len(udp), 0, 0, 17) + udp) == 0


@given(
    st.sampled_from([(CLIENT, ENDPOINT), (CLIENT_6, ENDPOINT_6)]),
    st.integers(1, 65535),
    st.binary(max_size=70),
)
def test_headers_and_checksums(ends: tuple[Address, Address], port: int, payload: bytes) -> None:
    (host, _), endpoint = ends
    check(build((host, port), endpoint, payload), (host, port), endpoint, payload)


def test_a_checksum_of_zero_is_written_as_its_other_zero() -> None:
    zero = next(
        payload
        for payload in (number.to_bytes(2, "big") for number in range(65536))
        if build(CLIENT, ENDPOINT, payload)[26:28] == b"\xff\xff"
    )
    check(build(CLIENT, ENDPOINT, zero), CLIENT, ENDPOINT, zero)
