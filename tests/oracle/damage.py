"""Frames after an accident: bits turned, bytes lost or added, tags put on. Pure."""

import random
from collections.abc import Callable

from tests.oracle.frame import PROVIDER, VLAN

ETHERNET = 14  # bytes: the kernel takes no shorter frame


def damaged(source: random.Random, data: bytes) -> bytes:
    """One to three accidents. What is left has at least the length of an Ethernet header, if it
    had before."""
    found = data
    for _ in range(source.choice([1, 1, 2, 3])):
        found = source.choice(_ACCIDENTS)(source, found)
    return found if len(found) >= ETHERNET else data


def _turn_bits(source: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(source.choice([1, 1, 2, 8])):
        if changed:
            changed[_place(source, data)] ^= 1 << source.randrange(8)
    return bytes(changed)


def _set_byte(source: random.Random, data: bytes) -> bytes:
    at = _place(source, data)
    return data[:at] + bytes([source.choice([0, 0xFF, source.randrange(256)])]) + data[at + 1 :]


def _insert(source: random.Random, data: bytes) -> bytes:
    at = _place(source, data)
    return data[:at] + source.randbytes(source.choice([1, 2, 4, 8])) + data[at:]


def _delete(source: random.Random, data: bytes) -> bytes:
    at = _place(source, data)
    return data[:at] + data[at + source.choice([1, 2, 4, 8]) :]


def _cut(source: random.Random, data: bytes) -> bytes:
    return data[: source.randrange(len(data) + 1)]


def _place(source: random.Random, data: bytes) -> int:
    """Rather among the headers."""
    limit = len(data) if source.random() < 0.3 else min(len(data), 120)
    return source.randrange(limit) if limit else 0


_ACCIDENTS = (_turn_bits, _turn_bits, _set_byte, _insert, _delete, _cut)


def tagged(source: random.Random, frame: bytes, ids: tuple[int, int]) -> bytes:
    """Put the VLAN ids on the frame; now and then others, a priority tag, or a third one."""
    tags = [id for id in ids if id]
    if source.random() < 0.03:
        tags = source.choice([[0], [0, *tags], [*tags, 0], [7, 8, 9], [*tags, 10], tags[:1], [10]])
    data = b""
    for at, id in enumerate(tags):
        kind = PROVIDER if at + 1 < len(tags) else VLAN
        if source.random() < 0.1:
            kind = source.choice([PROVIDER, VLAN])
        data += kind.to_bytes(2, "big") + (source.randrange(16) << 12 | id).to_bytes(2, "big")
    return frame[:12] + data + frame[12:]


def balanced(payload: bytes, checksum: Callable[[bytes], int]) -> bytes:
    """The payload with two bytes at an even offset changed so that a sum over it is zero, and the
    checksum 0xffff; `checksum` computes it."""
    if len(payload) < 4:
        return payload
    at = len(payload) // 2 * 2 - 2
    word = int.from_bytes(payload[at : at + 2], "big") + checksum(payload)
    return payload[:at] + (word % 0xFFFF).to_bytes(2, "big") + payload[at + 2 :]
