"""Carry flows from the pins of an earlier program over to new ones, while that program forwards.

A new layout, or another table size, needs new maps. Everything is copied before the new program is
attached, and once more after it, since the old one went on counting until then. Both run without a
packet process, so no flow is installed meanwhile; in between a few counts may be lost, no packet.
"""

import struct
from collections.abc import Callable
from pathlib import Path

from relayctl.datapath import maps
from relayctl.datapath.base import (
    LAYOUT,
    DatapathError,
    Nexthop,
    pack_nexthop,
    unpack_nexthop,
)
from relayctl.datapath.bpf_map import Map
from relayctl.flow import VALUE
from relayctl.wire.address import MAPPED, unpack_host

_SET_ASIDE = "_old"  # behind the name of a directory whose layout is ours, but not its sizes
_KEY = struct.Struct("=I")
_COUNT = struct.Struct("=Q")
_NEXTHOP_V1 = struct.Struct("=BBHHH6s6s4s4s")  # the same as today, but source and IPv4 gateway
_COUNTERS = ("reasons", "slow_reasons")
FLOW_MAPS = ("flows_v4", "flows_v6")

# positions in flow.VALUE
_FLAGS, _SSRC = 8, 11
_GROWING = (9, 10, 12, 13, 14, 17, 18)  # seen up and down, contended, packets, bytes


def predecessor(pins: Path) -> Path | None:
    """Pins that `pins` replaces: of an older layout, or set aside. Raises `DatapathError` where a
    newer version was here."""
    set_aside = pins.with_name(pins.name + _SET_ASIDE)
    if (set_aside / maps.META.name).exists():
        return set_aside
    older = []
    for path in pins.parent.glob("v*"):
        number = path.name.removeprefix("v")
        if not number.isdecimal() or not (path / maps.META.name).exists():
            continue
        if int(number) > LAYOUT:
            raise DatapathError(
                f"{path} was made by a newer version: start that one, or drop its flows with "
                "`relayctl unload`"
            )
        if int(number) < LAYOUT:
            older.append((int(number), path))
    return max(older)[1] if older else None


def set_aside(pins: Path) -> None:
    """Make room for maps of other sizes; what is attached goes on with the old ones."""
    pins.rename(pins.with_name(pins.name + _SET_ASIDE))


def restore(pins: Path) -> None:
    """Undo `set_aside`, if it was done. `pins` has to be gone."""
    aside = pins.with_name(pins.name + _SET_ASIDE)
    if aside.is_dir():
        aside.rename(pins)


def live_flows(pins: Path) -> dict[str, int]:
    """How many flows each table of older pins holds."""
    counts = {}
    for name in FLOW_MAPS:
        if (pins / name).exists():
            with Map.open(pins / name) as old:
                counts[name] = sum(len(keys) // old.key_size for keys, _ in old.batches())
    return counts


def copy(old: Path, new: Path) -> int:
    """Fill fresh maps with everything of `old` that they can hold; how many flows that was."""
    _copy_nexthops(old, new)
    return _each_table(old, new, _copy_flows)


def settle(old: Path, new: Path) -> int:
    """Bring the new tables up to what the old program did since `copy`, and add what it counted;
    how many flows changed."""
    for name in _COUNTERS:
        with Map.open(old / name) as source, Map.open(new / name) as target:
            _add_counters(source, target)
    return _each_table(old, new, _merge_flows)


def _each_table(old: Path, new: Path, carry: Callable[[Map, Map], int]) -> int:
    carried = 0
    for name in FLOW_MAPS:
        if (old / name).exists():
            with Map.open(old / name) as source, Map.open(new / name) as target:
                carried += carry(source, target)
    return carried


def _copy_flows(source: Map, target: Map) -> int:
    return sum(target.update_batch(keys, values) for keys, values in source.batches())


def _merge_flows(source: Map, target: Map) -> int:
    changed = 0
    for key, value in source.items():
        present = target.lookup(key)
        if present is None or present == value:  # gone meanwhile, or nothing came
            continue
        merged = merge(value, present)
        if merged != present:
            target.update(key, merged)
            changed += 1
    return changed


def merge(old: bytes, new: bytes) -> bytes:
    """A flow that two programs counted in: the later stamps, the larger counters."""
    before, fields = VALUE.unpack(old), list(VALUE.unpack(new))
    for at in _GROWING:
        fields[at] = max(fields[at], before[at])
    fields[_FLAGS] |= before[_FLAGS]
    fields[_SSRC] = fields[_SSRC] or before[_SSRC]
    return VALUE.pack(*fields)


def _add_counters(source: Map, target: Map) -> None:
    """Of all CPUs: the values of one entry are 64-bit numbers, joined."""
    for index in range(min(source.entries, target.entries)):
        key = _KEY.pack(index)
        before, present = source.lookup_joined(key) or b"", target.lookup_joined(key) or b""
        if any(before):
            pairs = zip(_counts(before), _counts(present), strict=True)
            target.update(key, b"".join(_COUNT.pack(a + b) for a, b in pairs))


def _counts(joined: bytes) -> list[int]:
    return [count for (count,) in _COUNT.iter_unpack(joined)]


def _copy_nexthops(old: Path, new: Path) -> None:
    with Map.open(old / "nexthops") as source, Map.open(new / "nexthops") as target:
        read = unpack_nexthop if source.value_size == target.value_size else _nexthop_of_v1
        for key, value in source.items():
            if nexthop := read(value):
                target.update(key, pack_nexthop(nexthop))


def _nexthop_of_v1(packed: bytes) -> Nexthop | None:
    valid, port, mtu, outer, inner, source_mac, destination_mac, _, gateway = _NEXTHOP_V1.unpack(
        packed
    )
    if not port:
        return None
    host = unpack_host(MAPPED + gateway)
    macs = source_mac, destination_mac
    return Nexthop(port, host, bool(valid), mtu, *macs, tags=(outer, inner))
