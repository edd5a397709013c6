import pytest

from tests.oracle.frame import PROVIDER, VLAN, Shape, build
from tests.oracle.parse import EXTENSIONS, Packet, parse

V4 = ("192.0.2.1", 1000), ("198.51.100.2", 2000)
V6 = ("2001:db8::1", 1000), ("2001:db8::2", 2000)


def packet(shape: Shape, ends: tuple[tuple[str, int], tuple[str, int]] = V4) -> Packet:
    found = parse(build(*ends, b"payload", shape))
    assert found
    return found


@pytest.mark.parametrize("ends", [V4, V6])
def test_plain(ends: tuple[tuple[str, int], tuple[str, int]]) -> None:
    found = packet(Shape(tos=0xB9, ttl=7, padding=b"pad"), ends)
    assert (found.source, found.destination) == (ends[0][0], ends[1][0])
    assert found.ports == (1000, 2000)
    assert (found.tos, found.ttl, found.payload, found.padding) == (0xB9, 7, b"payload", b"pad")
    assert found.is_whole()
    assert not found.is_odd()


@pytest.mark.parametrize(
    ("tags", "ids"),
    [
        ((), (0, 0)),
        (((VLAN, 0xF00A),), (10, 0)),
        (((PROVIDER, 0),), (0, 0)),
        (((PROVIDER, 0xFFF), (VLAN, 1)), (0xFFF, 1)),
        (((VLAN, 0), (PROVIDER, 5)), (5, 0)),
    ],
)
def test_tags(tags: tuple[tuple[int, int], ...], ids: tuple[int, int]) -> None:
    assert packet(Shape(tags=tags)).tags == ids


@pytest.mark.parametrize(
    "shape",
    [
        Shape(tags=((VLAN, 1), (VLAN, 2), (VLAN, 3))),
        Shape(tags=((0x9100, 1),)),
        Shape(ether_type=0x0806),
        Shape(version=6),
        Shape(protocol=6),
    ],
)
def test_no_packet_for_the_relay(shape: Shape) -> None:
    assert parse(build(*V4, b"payload", shape)) is None


@pytest.mark.parametrize("number", sorted(EXTENSIONS))
def test_extension_in_front_of_udp_hides_it(number: int) -> None:
    found = packet(Shape(extensions=((number, bytes(7)),)), V6)
    assert found.ports is None
    assert found.is_whole()
    assert found.is_odd()


@pytest.mark.parametrize("behind", [6, 58, 59, 50, 135])
def test_extension_in_front_of_something_else(behind: int) -> None:
    frame = build(*V6, b"", Shape(extensions=((0, bytes(7)),), protocol=behind))
    assert parse(frame) is None


@pytest.mark.parametrize(
    ("shape", "is_whole"),
    [
        (Shape(udp_length=7), False),
        (Shape(udp_length=8), True),
        (Shape(udp_length=16), False),
        (Shape(ip_length=36), False),
        (Shape(ip_length=34), False),
        (Shape(ip_length=36, padding=b"x"), True),
        (Shape(ihl=4), False),
        (Shape(fragment=0x2000, udp_length=9999), True),
        (Shape(fragment=0x2000, ip_length=20), False),
        (Shape(fragment=1, ip_length=21), True),
    ],
)
def test_lengths(shape: Shape, is_whole: bool) -> None:
    assert packet(shape).is_whole() is is_whole


@pytest.mark.parametrize(
    "shape",
    [
        Shape(ttl=1),
        Shape(ttl=0),
        Shape(options=bytes(4)),
        Shape(behind=b"x"),
        Shape(udp_length=8),
        Shape(fragment=0x2000),
        Shape(fragment=0x1FFF),
    ],
)
def test_odd(shape: Shape) -> None:
    found = packet(shape)
    assert found.is_whole()
    assert found.is_odd()


def test_absent_checksum_is_odd_in_ipv6_only() -> None:
    assert packet(Shape(sum=0), V6).is_odd()
    assert not packet(Shape(sum=0), V4).is_odd()


def test_cut_frames_never_raise() -> None:
    for ends in (V4, V6):
        for shape in (Shape(), Shape(tags=((VLAN, 1),)), Shape(extensions=((44, bytes(7)),))):
            whole = build(*ends, b"payload", shape)
            for length in range(len(whole)):
                found = parse(whole[:length])
                assert found is None or not found.is_whole()


def test_mapped_address_on_an_ipv6_wire_is_no_ipv4_address() -> None:
    found = parse(build(("::ffff:192.0.2.1", 1), V6[1], b""))
    assert found
    assert ":" in found.source
