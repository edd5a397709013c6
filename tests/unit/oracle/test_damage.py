import random

from tests.oracle.damage import ETHERNET, balanced, damaged, tagged
from tests.oracle.frame import build, udp_checksum
from tests.oracle.parse import parse

ENDS = ("192.0.2.1", 1000), ("198.51.100.2", 2000)


def test_a_frame_keeps_its_ethernet_header_length() -> None:
    source = random.Random(1)
    whole = build(*ENDS, b"payload")
    found = [damaged(source, whole) for _ in range(2000)]
    assert min(map(len, found)) >= ETHERNET
    assert sum(each != whole for each in found) > 1800


def test_tags_are_read_back() -> None:
    source = random.Random(2)
    found = [parse(tagged(source, build(*ENDS, b""), (4094, 30))) for _ in range(200)]
    right = [packet for packet in found if packet and packet.tags == (4094, 30)]
    assert 150 < len(right) < 200


def test_balanced_payload_sums_up_to_zero() -> None:
    source = random.Random(3)
    for size in range(4, 60):
        payload = balanced(source.randbytes(size), lambda each: udp_checksum(*ENDS, each))
        assert len(payload) == size
        assert udp_checksum(*ENDS, payload) == 0xFFFF
