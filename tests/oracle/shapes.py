"""How frames are wrapped: as a rule plainly, else with one thing or two at the edge of the rules.

Pure.
"""

import random
from collections.abc import Callable
from typing import Any

from tests.oracle.frame import PLAIN, Shape

EXTENSIONS = (0, 43, 44, 51, 60)  # those that the relay knows
_NOT_KNOWN = (135, 139, 140, 50, 59, 6, 1)  # mobility, HIP, shim6, ESP, none, TCP, ICMP

Change = dict[str, Any]


def _time_to_live(source: random.Random) -> Change:
    return {"ttl": source.choice([0, 1, 2, 255])}


def _type_of_service(source: random.Random) -> Change:
    return {"tos": source.randrange(256), "flow_label": source.getrandbits(20)}


def _sum(source: random.Random) -> Change:
    return {"sum": source.choice([0, 0, 0, 0xFFFF, 0xFFFE, 1, source.randrange(65536)])}


def _fragment(source: random.Random) -> Change:
    words = [0x2000, 0x0001, 0x2001, 0x1FFF, 0x3FFF, 0x8000, 0xC000, 0, source.randrange(65536)]
    return {"fragment": source.choice(words), "id": source.randrange(65536)}


def _options(source: random.Random) -> Change:
    return {"options": source.randbytes(4 * source.choice([1, 2, 10]))}


def _header_length(source: random.Random) -> Change:
    return {"ihl": source.randrange(16)}


def _version(source: random.Random) -> Change:
    return {"version": source.choice([4, 6, source.randrange(1, 16)])}


def _ether_type(source: random.Random) -> Change:
    return {"ether_type": source.choice([0x0800, 0x86DD, 0x0806, 0x88A8, 0x8100, 0x9100])}


def _protocol(source: random.Random) -> Change:
    return {"protocol": source.choice([*EXTENSIONS, *_NOT_KNOWN, 17, source.randrange(256)])}


def _extensions(source: random.Random) -> Change:
    found = []
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        number = source.choice(EXTENSIONS if source.random() < 0.85 else _NOT_KNOWN)
        more = bytes([0]) + source.randbytes(6) if number != 44 else source.randbytes(7)
        found.append((number, more))
    return {"extensions": tuple(found)}


def _first_fragment_of_ipv6(source: random.Random) -> Change:
    return {"extensions": ((44, b"\0\0\1" + source.randbytes(4)),)}


def _behind(source: random.Random) -> Change:
    return {"behind": bytes(source.choice([1, 2, 3, 18, 100]))}


def _padding(source: random.Random) -> Change:
    return {"padding": source.randbytes(source.choice([1, 2, 6, 18, 100]))}


def _udp_length(source: random.Random) -> Change:
    return {"udp_length": source.choice([0, 1, 7, 8, 9, 20, 46, 47, 65535, source.randrange(1500)])}


def _ip_length(source: random.Random) -> Change:
    edges = [0, 1, 7, 8, 19, 20, 27, 28, 40, 48, 65535, 65500, source.randrange(1500)]
    return {"ip_length": source.choice(edges)}


_CHANGES: tuple[tuple[Callable[[random.Random], Change], int], ...] = (
    (_type_of_service, 5),
    (_time_to_live, 3),
    (_sum, 4),
    (_fragment, 2),
    (_options, 1),
    (_header_length, 1),
    (_version, 1),
    (_ether_type, 1),
    (_protocol, 1),
    (_extensions, 3),
    (_first_fragment_of_ipv6, 1),
    (_behind, 1),
    (_padding, 3),
    (_udp_length, 2),
    (_ip_length, 2),
)
_CHOICE = [change for change, weight in _CHANGES for _ in range(weight)]


def shape(source: random.Random) -> Shape:
    """Plain in two cases of three."""
    chance = source.random()
    if chance < 0.6:
        return PLAIN
    changes = source.choice(_CHOICE)(source)
    if chance > 0.9:
        changes |= source.choice(_CHOICE)(source)
    return Shape(**changes)
