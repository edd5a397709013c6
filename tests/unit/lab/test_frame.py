import struct

import pytest

from tests.lab.frame import Kind, parse, with_destination_port, with_source_port


def internet_checksum(data: bytes) -> int:
    total: int = sum(
        struct.unpack(f"!{len(data) // 2 + len(data) % 2}H", data + bytes(len(data) % 2))
    )
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def make(
    payload: bytes = b"\x80payload", *, sport: int = 5000, options: int = 0, fragment: int = 0
) -> bytes:
    length = 8 + len(payload)
    addresses = bytes([10, 1, 0, 2, 203, 0, 113, 10])
    udp = struct.pack("!HHHH", sport, 3478, length, 0) + payload
    pseudo = addresses + struct.pack("!BBH", 0, 17, length)
    udp = udp[:6] + struct.pack("!H", internet_checksum(pseudo + udp) or 0xFFFF) + udp[8:]
    size = 20 + 4 * options
    ip = struct.pack("!BBHHHBBH", 0x45 + options, 0, size + length, 1, fragment, 64, 17, 0)
    return b"\xaa" * 6 + b"\xbb" * 6 + b"\x08\x00" + ip + addresses + bytes(4 * options) + udp


def checksum_holds(frame: bytes) -> bool:
    found = parse(frame)
    assert found is not None
    udp = frame[found.at : found.at + 8] + found.payload
    pseudo = frame[26:34] + struct.pack("!BBH", 0, 17, len(udp))
    return internet_checksum(pseudo + udp) == 0


@pytest.mark.parametrize("options", [0, 3])
def test_parse(options: int) -> None:
    found = parse(make(b"hello", options=options) + b"padding")
    assert found is not None
    assert found.source == ("10.1.0.2", 5000)
    assert found.destination == ("203.0.113.10", 3478)
    assert found.payload == b"hello"


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"", id="empty"),
        pytest.param(make()[:40], id="cut"),
        pytest.param(make().replace(b"\x08\x00\x45", b"\x08\x06\x45"), id="arp"),
        pytest.param(make(fragment=0x2000), id="first_fragment"),
        pytest.param(make(fragment=0x0010), id="later_fragment"),
        pytest.param(make()[:23] + b"\x06" + make()[24:], id="tcp"),
    ],
)
def test_opaque(frame: bytes) -> None:
    assert parse(frame) is None


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"\x00\x01" + bytes(18), Kind.STUN),
        (b"\x16\xfe\xfd", Kind.DTLS),
        (b"\x80\x6f" + bytes(10), Kind.RTP),
        (b"\x80\xc8" + bytes(10), Kind.RTCP),
        (b"\x56\xec", Kind.UDP),
        (b"", Kind.UDP),
    ],
)
def test_kind(payload: bytes, kind: Kind) -> None:
    found = parse(make(payload))
    assert found is not None
    assert found.kind is kind


@pytest.mark.parametrize("port", [1, 5001, 40000, 65535])
@pytest.mark.parametrize(
    "payload", [b"even", b"odd", bytes(3), b"\xff" * 100], ids=["even", "odd", "zeros", "ones"]
)
def test_new_port_keeps_the_checksum_right(port: int, payload: bytes) -> None:
    frame = make(payload)
    found = parse(frame)
    assert found is not None
    assert checksum_holds(frame)
    moved = with_source_port(frame, found, port)
    assert checksum_holds(moved)
    assert parse(moved).source == ("10.1.0.2", port)  # type: ignore[union-attr]
    moved = with_destination_port(frame, found, port)
    assert checksum_holds(moved)
    assert parse(moved).destination == ("203.0.113.10", port)  # type: ignore[union-attr]


def test_absent_checksum_stays_absent() -> None:
    frame = bytearray(make())
    found = parse(bytes(frame))
    assert found is not None
    frame[found.at + 6 : found.at + 8] = bytes(2)
    moved = with_source_port(bytes(frame), found, 4000)
    assert moved[found.at + 6 : found.at + 8] == bytes(2)
