"""Many flows at once, as the bytes that a map gives: columns instead of objects. Pure.

The dtypes are those of `relayctl.flow`'s structs; tests compare them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relayctl.flow import CLIENT_IDLE, CONFIRMED, ENDPOINT_IDLE, NEW_LIFE, FlowKey

SIZE = 4096  # flows looked at in one go

VALUE = np.dtype(
    [
        ("token", "S8"),
        ("host", ">u4"),
        ("port", ">u2"),
        ("cluster", "=u2"),
        ("nexthop_in", "=u2"),
        ("nexthop_out", "=u2"),
        ("sport", ">u2"),
        ("back", "u1"),
        ("flags", "u1"),
        ("seen_up", "=u4"),
        ("seen_down", "=u4"),
        ("ssrc", ">u4"),
        ("contended", "=u4"),
        ("packets_up", "=u4"),
        ("packets_down", "=u4"),
        ("born", "=u4"),
        ("answers", "=u4"),
        ("bytes_up", "=u8"),
        ("bytes_down", "=u8"),
    ]
)
KEYS = {
    4: np.dtype([("host", ">u4"), ("port", ">u2"), ("vip", "=u2")]),
    6: np.dtype([("host", "S16"), ("port", ">u2"), ("vip", "=u2"), ("zero", "=u4")]),
}
"""By IP version. As a string of 16 bytes an IPv6 address compares as its number does."""

_VERSIONS = {dtype.itemsize: version for version, dtype in KEYS.items()}

Bools = NDArray[np.bool_]
Column = NDArray[Any]


class FlowSlice:
    """Flows of one family. Columns are arrays of one length."""

    def __init__(self, keys: bytes, values: bytes) -> None:
        """Joined keys and joined values, as `slices` yields them."""
        self.values = np.frombuffer(values, VALUE)
        self.version = _VERSIONS[len(keys) // len(self.values)]
        self._keys = keys
        self.keys = np.frombuffer(keys, KEYS[self.version])

    def __len__(self) -> int:
        return len(self.values)

    def key(self, at: int) -> FlowKey:
        size = self.keys.itemsize
        return FlowKey.read(self._keys[at * size : (at + 1) * size])

    def confirmed(self) -> Bools:
        return (self.values["flags"] & CONFIRMED).astype(bool)

    def over(self, now: int) -> Bools:
        """Which flows are over at stamp `now`: `relayctl.flow.expiry`, for all of them."""
        born, up, down = (self.values[name] for name in ("born", "seen_up", "seen_down"))
        return np.where(
            self.confirmed(),
            (_age(now, np.where(up, up, born)) > CLIENT_IDLE)
            | (_age(now, np.where(down, down, born)) > ENDPOINT_IDLE),
            _age(now, born) > NEW_LIFE,
        )


def _age(now: int, stamps: Column) -> Column:
    """In units; below 0 where a stamp is ahead of `now`."""
    return now - stamps.astype(np.int64)


def slices(
    batches: Iterable[tuple[bytes, bytes]], size: int = SIZE
) -> Iterator[tuple[bytes, bytes]]:
    """Batches of any size, joined to some of at least `size` flows; keys of each have one size."""
    waiting: dict[int, tuple[list[bytes], list[bytes]]] = {}
    counts: Counter[int] = Counter()
    for keys, values in batches:
        count = len(values) // VALUE.itemsize
        key_size = len(keys) // count
        joined = waiting.setdefault(key_size, ([], []))
        joined[0].append(keys)
        joined[1].append(values)
        counts[key_size] += count
        if counts[key_size] >= size:
            yield b"".join(joined[0]), b"".join(joined[1])
            del waiting[key_size], counts[key_size]
    for joined in waiting.values():
        yield b"".join(joined[0]), b"".join(joined[1])
