"""What a relay pinned, in plain memory."""

from collections.abc import Iterator
from typing import Any

from relayctl.flow import pack_flow
from relayctl.inspect.pinned import Pinned
from tests.unit.relayctl.memory_datapath import MemoryDatapath

META: dict[str, Any] = {
    "layout": 2,
    "vips": {"1": ["203.0.113.10:3478", "10.0.0.5:3478"]},
    "mode": "native",
    "interfaces": [
        ["outer0", 11, 1, "outer", 11, [0, 0]],
        ["eth0.20", 13, 2, "inner", 12, [20, 0]],
    ],
}


def batches(datapath: MemoryDatapath) -> Iterator[tuple[bytes, bytes]]:
    """One batch of each key size, as maps give them."""
    packed = [(key, pack_flow(flow)) for key, flow in datapath.flows.items()]
    for size in {len(key) for key, _ in packed}:
        found = [each for each in packed if len(each[0]) == size]
        yield b"".join(key for key, _ in found), b"".join(value for _, value in found)


def pinned(datapath: MemoryDatapath, attached: frozenset[int] = frozenset({11, 12})) -> Pinned:
    """An instance with two interfaces, one of them a VLAN device."""
    return Pinned(
        datapath,
        lambda: batches(datapath),
        META,
        attached,
        {"v4": 1000, "v6": 24},
        keys=(1, 2),
        program=71,
        instructions=4711,
    )
