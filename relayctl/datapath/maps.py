"""The pinned maps: shapes, kernel memory, and whether those of an earlier run can be adopted. Pure.

The program declares the ones it uses again in `bpf/relay.c`.
"""

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relayctl.datapath.base import LAYOUT, NEXTHOP, NEXTHOPS, PORTS
from relayctl.datapath.spec import Spec
from relayctl.flow import KEY_V4, VALUE
from relayctl.reason import COUNTERS
from relayctl.wire.address import render

BUDGETS = 64  # slots, one per reason of the program
META_SIZE = 4096  # bytes

_BUCKET = 16  # bytes of the kernel's struct bucket
_ELEMENT = 48  # bytes of struct htab_elem in front of key and value


class MapType(enum.IntEnum):
    """Numbers of enum bpf_map_type."""

    HASH = 1
    ARRAY = 2
    PERCPU_ARRAY = 6
    DEVMAP = 14


@dataclass(frozen=True, slots=True)
class MapShape:
    name: str
    type: MapType
    key_size: int  # bytes
    value_size: int
    entries: int

    def __str__(self) -> str:
        return (
            f"{self.type.name.lower()} of {self.entries} entries, "
            f"{self.key_size}-byte keys, {self.value_size}-byte values"
        )

    def memory(self, cpus: int) -> int:
        """Bytes of kernel memory, without a few hundred for the map itself."""
        value = _align(self.value_size)
        match self.type:
            case MapType.HASH:  # preallocated, with one spare element per CPU
                buckets = 1 << (self.entries - 1).bit_length()
                element = _ELEMENT + _align(self.key_size) + value
                return buckets * _BUCKET + (self.entries + cpus) * element
            case MapType.PERCPU_ARRAY:
                return self.entries * (value * cpus + 8)
            case _:
                return self.entries * value


def _align(size: int) -> int:
    return (size + 7) & ~7


def shapes(max_flows: int) -> tuple[MapShape, ...]:
    """Every map of an instance but `meta`."""
    return (
        MapShape("flows_v4", MapType.HASH, KEY_V4.size, VALUE.size, max_flows),
        MapShape("nexthops", MapType.ARRAY, 4, NEXTHOP.size, NEXTHOPS),
        MapShape("egress", MapType.DEVMAP, 4, 4, PORTS),
        MapShape("reasons", MapType.PERCPU_ARRAY, 4, 8, COUNTERS),
        MapShape("slow_reasons", MapType.ARRAY, 4, 8, COUNTERS),
        MapShape("control", MapType.ARRAY, 4, 4, 1),
        MapShape("budgets", MapType.PERCPU_ARRAY, 4, 8, BUDGETS),
    )


META = MapShape("meta", MapType.ARRAY, 4, META_SIZE, 1)


def meta(spec: Spec) -> dict[str, Any]:
    """What the numbers inside pinned values mean; kept beside them as JSON."""
    return {
        "layout": LAYOUT,
        "structures": [KEY_V4.format, VALUE.format, NEXTHOP.format],
        "vips": {str(v.id): [render(v.public), render(v.local)] for v in spec.vips},
        "inner": [spec.inner_address, spec.inner_port_base, spec.inner_ports],
    }


def pack_meta(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content).encode().ljust(META_SIZE, b"\0")


def unpack_meta(value: bytes) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(value.rstrip(b"\0") or b"{}")
    return content


def disagreement(pinned: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """Why pinned flows would mean something else to a program made for `wanted`, or None.

    A VIP may come or go; an id that is in use keeps its addresses.
    """
    for key in ("layout", "structures", "inner"):
        if pinned.get(key) != wanted[key]:
            return f"{key}: pinned {pinned.get(key)}, wanted {wanted[key]}"
    pinned_vips, vips = pinned.get("vips", {}), wanted["vips"]
    for id in pinned_vips.keys() & vips.keys():
        if pinned_vips[id] != vips[id]:
            return f"VIP {id}: pinned {' = '.join(pinned_vips[id])}, wanted {' = '.join(vips[id])}"
    return None
