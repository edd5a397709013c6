import pytest

from relayctl.datapath.base import Nexthop
from tests.oracle.frame import VLAN, Shape, build, udp_checksum
from tests.oracle.parse import Packet, parse
from tests.oracle.rewrite import ip_length, readdressed, with_headers

CLIENT, VIP = ("192.0.2.1", 1000), ("198.51.100.2", 2000)
OURS, ENDPOINT = ("fd00::1", 5100), ("fd00::2", 5000)
NEXTHOP = Nexthop(1, "fd00::2", True, 1500, bytes(6), bytes(range(6)), (7, 0))


def packet(shape: Shape) -> Packet:
    found = parse(build(CLIENT, VIP, b"payload", shape))
    assert found
    return found


def test_new_headers_are_those_of_a_frame_made_from_nothing() -> None:
    found = with_headers(packet(Shape(ttl=9, tos=0x2E, id=5)), NEXTHOP, OURS, ENDPOINT, b"inner")
    macs = NEXTHOP.destination_mac, NEXTHOP.source_mac
    shape = Shape(macs=macs, tags=((VLAN, 7),), ttl=8, tos=0x2E)
    assert found == build(OURS, ENDPOINT, b"inner", shape)


def test_padding_stays_behind() -> None:
    found = with_headers(packet(Shape(padding=b"pad")), NEXTHOP, OURS, ENDPOINT, b"inner")
    assert found.endswith(b"innerpad")


@pytest.mark.parametrize("error", [1, 0x1234, 0xFFFE])
def test_wrong_sum_stays_wrong_by_the_same(error: int) -> None:
    wrong = (udp_checksum(CLIENT, VIP, b"payload") + error) % 0xFFFF or 0xFFFF
    found = parse(with_headers(packet(Shape(sum=wrong)), NEXTHOP, OURS, ENDPOINT, b"inner"))
    assert found
    assert (found.sum - udp_checksum(OURS, ENDPOINT, b"inner")) % 0xFFFF == error


def test_absent_sum_stays_absent() -> None:
    found = parse(with_headers(packet(Shape(sum=0)), NEXTHOP, VIP, CLIENT, b"payload"))
    assert found
    assert found.sum == 0


def test_readdressed_keeps_the_rest_of_the_header() -> None:
    shape = Shape(ttl=9, id=77, fragment=0, tos=3)
    found = readdressed(packet(shape), NEXTHOP, CLIENT, ("10.2.0.2", 5000))
    macs = NEXTHOP.destination_mac, NEXTHOP.source_mac
    shape = Shape(macs=macs, tags=((VLAN, 7),), ttl=8, id=77, fragment=0, tos=3)
    assert found == build(CLIENT, ("10.2.0.2", 5000), b"payload", shape)


def test_wrong_header_sum_stays_wrong() -> None:
    right = readdressed(packet(Shape()), NEXTHOP, CLIENT, ("10.2.0.2", 5000))
    header_sum = int.from_bytes(packet(Shape()).frame[24:26], "big")
    wrong = readdressed(
        packet(Shape(header_sum=header_sum + 1)), NEXTHOP, CLIENT, ("10.2.0.2", 5000)
    )
    assert int.from_bytes(wrong[28:30], "big") == int.from_bytes(right[28:30], "big") + 1
    assert wrong[30:] == right[30:]


def test_ip_length() -> None:
    assert (ip_length(CLIENT, b"abc"), ip_length(OURS, b"abc")) == (31, 51)
