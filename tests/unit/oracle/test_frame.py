"""The reference itself is held against frames and sums that others wrote down."""

from tests.oracle.frame import (
    PROVIDER,
    VLAN,
    Shape,
    build,
    checksum,
    ones_sum,
    tags_of,
    udp_checksum,
)

V4 = ("192.0.2.1", 1000), ("198.51.100.2", 2000)
V6 = ("2001:db8::1", 1000), ("2001:db8::2", 2000)


def test_sum_of_rfc1071() -> None:
    """The example of RFC 1071 section 3."""
    data = bytes.fromhex("0001f203f4f5f6f7")
    assert (ones_sum(data), checksum(data)) == (0xDDF2, 0x220D)


def test_header_sum_that_everybody_knows() -> None:
    header = bytes.fromhex("450000730000400040110000c0a80001c0a800c7")
    assert checksum(header) == 0xB861


def test_udp_sum_is_never_zero() -> None:
    sums = {udp_checksum(*V4, word.to_bytes(2, "big")) for word in range(0x10000)}
    assert sums == set(range(1, 0x10000))


def test_plain_ipv4() -> None:
    assert build(*V4, b"ab").hex() == (
        "02000000000b02000000000a08004500001e0000400040114e98c0000201c633640203e807d0000aa6886162"
    )


def test_plain_ipv6() -> None:
    assert build(*V6, b"ab", Shape(tos=0xB8, flow_label=0x12345, ttl=9)).hex() == (
        "02000000000b02000000000a86dd"
        "6b812345000a1109"
        "20010db800000000000000000000000120010db8000000000000000000000002"
        "03e807d0000a374b"
        "6162"
    )


def test_extension_headers_name_their_follower() -> None:
    frame = build(*V6, b"", Shape(extensions=((0, bytes(7)), (60, b"\0" + bytes(6)))))
    assert (frame[20], frame[54], frame[62]) == (0, 60, 17)
    assert int.from_bytes(frame[18:20], "big") == 16 + 8


def test_tags() -> None:
    frame = build(*V4, b"", Shape(tags=tags_of((4094, 30))))
    assert frame[12:24].hex() == "88a80ffe8100001e08004500"
    assert tags_of((7, 0)) == ((VLAN, 7),)
    assert tags_of((7, 8)) == ((PROVIDER, 7), (VLAN, 8))
    assert tags_of((0, 0)) == ()
