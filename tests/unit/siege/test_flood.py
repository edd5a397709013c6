"""Shapes of floods: right frames but for what is made up, which stands where it should."""

import struct

import pytest

from relayctl.wire import stun
from tests.kernel.packets import checksum, take_apart
from tests.siege import flood
from tests.siege.flood import Sent, Shape

MACS = bytes(6), bytes(5) + b"\1"
VIP = "203.0.113.10", 3478
KINDS = {
    "forged": flood.forged(MACS, VIP),
    "copies": flood.copies(MACS, VIP, b"datagram"),
    "odd": flood.odd(MACS, VIP),
    "rtp": flood.sources_of_rtp(MACS, VIP),
    "stream": flood.from_client(MACS, ("10.1.0.2", 40000), VIP, b"\x80media"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_of_a_flood_have_one_length(kind: str) -> None:
    assert len({len(shape.frame) for shape in KINDS[kind]}) == 1


@pytest.mark.parametrize("kind", ["forged", "copies", "rtp", "stream"])
def test_frames_are_whole(kind: str) -> None:
    for shape in KINDS[kind]:
        datagram = take_apart(shape.frame)
        assert (datagram.macs, datagram.destination, datagram.sum) == (MACS, VIP, 0)


def test_odd_frames_are_odd_and_otherwise_right() -> None:
    seen = []
    for shape in KINDS["odd"]:
        ip = shape.frame[14:]
        header = ip[: (ip[0] & 15) * 4]
        assert checksum(header) == 0
        assert int.from_bytes(header[2:4], "big") == len(ip)
        seen.append((len(header) > 20, int.from_bytes(header[6:8], "big") & 0x3FFF, header[8]))
    assert seen == [
        (False, 0x2000, 64),
        (False, 0x2010, 64),
        (True, 0, 64),
        (False, 0, 1),
    ]


def test_letters_are_made_up_inside_the_token() -> None:
    """Behind its first byte, which names version and key: the signature is what fails."""
    shape = KINDS["forged"][0]
    text = shape.text_at - 42
    changed = bytearray(take_apart(shape.frame).payload)
    changed[text : text + 16] = b"p" * 16
    token = stun.token_of(bytes(changed))
    assert token is not None
    assert token.startswith(b"IQ" + b"p" * 16)
    assert stun.is_whole(bytes(changed), 0x0001)


@pytest.mark.parametrize("source", [bytes(4), bytes([60, 15, 255, 255])])
def test_the_sum_of_the_header_completes_with_any_source(source: bytes) -> None:
    shape = KINDS["odd"][2]
    total, *offsets = struct.unpack_from("=QIIII", shape.pack())
    total += sum(struct.unpack("=HH", source))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    header = bytearray(shape.frame[14:38])
    header[10:12] = struct.pack("=H", ~total & 0xFFFF)
    header[12:16] = source
    assert checksum(bytes(header)) == 0
    assert offsets == [0, 0, 0, 0]


def test_a_packed_shape_is_padded_to_whole_words() -> None:
    packed = Shape(bytes(14) + b"\x45" + bytes(30), 1, 2, 3).pack()
    assert len(packed) == 24 + 48
    assert struct.unpack_from("=IIII", packed, 8) == (1, 2, 3, 0)


def test_rates() -> None:
    assert Sent(300, 2.0).rate == 150
    assert Sent(0, 0.0).rate == 0
