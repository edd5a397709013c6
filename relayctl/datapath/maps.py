"""The pinned maps: shapes, kernel memory, and whether those of an earlier run can be adopted. Pure.

The program declares the ones it uses again in `bpf/relay.c`.
"""

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Network
from typing import Any

from relayctl.datapath.base import LAYOUT, NEXTHOP, NEXTHOPS, PEER, PORTS, ROUTE_KEY, ROUTE_KEYS
from relayctl.datapath.spec import Spec
from relayctl.flow import KEY_V4, KEY_V6, VALUE
from relayctl.peers import SLOTS
from relayctl.reason import COUNTERS
from relayctl.wire.address import render
from relayctl.wire.cluster import IPV4_PREFIX

BUDGETS = 64 + 1024 + 16384 + 65536  # slots: reasons, endpoints, clients, tokens
META_SIZE = 65536  # bytes

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


def flow_shapes(max_flows: int, max_flows_v6: int) -> tuple[MapShape, MapShape]:
    """The flow tables, which take nearly all the memory."""
    return (
        MapShape("flows_v4", MapType.HASH, KEY_V4.size, VALUE.size, max_flows),
        MapShape("flows_v6", MapType.HASH, KEY_V6.size, VALUE.size, max_flows_v6),
    )


def shapes(max_flows: int, max_flows_v6: int) -> tuple[MapShape, ...]:
    """Every map of an instance but `meta`."""
    return (
        *flow_shapes(max_flows, max_flows_v6),
        MapShape("nexthops", MapType.ARRAY, 4, NEXTHOP.size, NEXTHOPS),
        MapShape("egress", MapType.DEVMAP, 4, 4, PORTS),
        MapShape("keys", MapType.ARRAY, 4, ROUTE_KEY.size, ROUTE_KEYS),
        MapShape("reasons", MapType.PERCPU_ARRAY, 4, 8, COUNTERS),
        MapShape("slow_reasons", MapType.ARRAY, 4, 8, COUNTERS),
        MapShape("control", MapType.ARRAY, 4, 4, 1),
        MapShape("peers", MapType.ARRAY, 4, PEER.size, SLOTS),
        MapShape("budgets", MapType.PERCPU_ARRAY, 4, 8, BUDGETS),
    )


_BEFORE = {"transparent": False}  # what a key means where an older layout has none

META = MapShape("meta", MapType.ARRAY, 4, META_SIZE, 1)


def meta(spec: Spec) -> dict[str, Any]:
    """What the numbers inside pinned values mean; kept beside them as JSON."""
    return {
        "layout": LAYOUT,
        "structures": [s.format for s in (KEY_V4, KEY_V6, VALUE, NEXTHOP, ROUTE_KEY)],
        "vips": {str(v.id): [render(v.public), render(v.local)] for v in spec.vips},
        "clusters": {str(c.id): str(c.prefix) for c in spec.clusters},
        "inner": [*spec.inner_addresses, spec.inner_port_base, spec.inner_ports],
        "transparent": spec.transparent,
        "mode": spec.mode,
        "interfaces": [
            [i.name, i.ifindex, i.port, i.role, i.carrier, list(i.tags)] for i in spec.interfaces
        ],
    }


def prefixes(meta: Mapping[str, Any]) -> dict[int, bytes]:
    """IPv6 clusters of a pinned `meta`, as `unpack_flow` takes them."""
    networks = {int(id): IPv6Network(prefix) for id, prefix in meta.get("clusters", {}).items()}
    return {
        id: network.network_address.packed[:12]
        for id, network in networks.items()
        if network != IPV4_PREFIX
    }


def pack_meta(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content).encode().ljust(META_SIZE, b"\0")


def unpack_meta(value: bytes) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(value.rstrip(b"\0") or b"{}")
    return content


def disagreement(
    pinned: Mapping[str, Any], wanted: Mapping[str, Any], *, same_layout: bool = True
) -> str | None:
    """Why pinned flows would mean something else to a program made for `wanted`, or None.

    A VIP or a cluster may come or go; an id that is in use keeps its meaning.
    """
    for key in ("layout", "structures", "inner", "transparent"):
        if not same_layout and key not in ("inner", "transparent"):
            continue
        found = pinned.get(key, _BEFORE.get(key))
        if found != wanted[key]:
            return f"{key}: pinned {found}, wanted {wanted[key]}"
    for key, name in (("vips", "VIP"), ("clusters", "cluster")):
        before, after = pinned.get(key, {}), wanted[key]
        for id in before.keys() & after.keys():
            if before[id] != after[id]:
                return f"{name} {id}: pinned {_text(before[id])}, wanted {_text(after[id])}"
    return None


def _text(meaning: str | list[str]) -> str:
    return meaning if isinstance(meaning, str) else " = ".join(meaning)
