"""What a datapath is: a flow table, nexthops, counters and a heartbeat.

Two implementations: `xdp` (pinned BPF maps; the kernel forwards hits) and `socket` (plain memory;
the packet process forwards everything). The packet process and the control process each hold one
handle; neither knows which implementation is behind it.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from relayctl.flow import Flow, FlowKey
from relayctl.reason import Reason
from relayctl.wire.address import pack_host, unpack_host
from relayctl.wire.route_token import Key

LAYOUT = 2  # version of every pinned structure; part of the pin path
NEXTHOPS = 4096  # entries; index 0 is never valid
PORTS = 64  # egress ports; 0 is unused
NEVER = 0  # stamp in the heartbeat of a packet process that is gone


@dataclass(frozen=True, slots=True)
class Nexthop:
    """Where a redirected packet goes next. `gateway` is the neighbour's address (the destination
    itself when it is on the link) and identifies the entry to a restarted daemon."""

    port: int  # egress port number, 1-63
    gateway: str
    valid: bool = False
    mtu: int = 1500
    source_mac: bytes = bytes(6)
    destination_mac: bytes = bytes(6)
    tags: tuple[int, int] = (0, 0)  # VLAN tags, outer first; 0 = none


NEXTHOP = struct.Struct("=BBHHH6s6s16s")
"""valid, port, mtu, tag, tag, destination MAC, source MAC, gateway (network order, IPv4 mapped)."""

assert NEXTHOP.size == 36


def pack_nexthop(nexthop: Nexthop | None) -> bytes:
    if nexthop is None:
        return bytes(NEXTHOP.size)
    return NEXTHOP.pack(
        nexthop.valid,
        nexthop.port,
        nexthop.mtu,
        *nexthop.tags,
        nexthop.destination_mac,
        nexthop.source_mac,
        pack_host(nexthop.gateway),
    )


def unpack_nexthop(packed: bytes) -> Nexthop | None:
    """None for an entry that was never used."""
    valid, port, mtu, outer, inner, destination_mac, source_mac, gateway = NEXTHOP.unpack(packed)
    if not port:
        return None
    return Nexthop(
        port=port,
        gateway=unpack_host(gateway),
        valid=bool(valid),
        mtu=mtu,
        source_mac=source_mac,
        destination_mac=destination_mac,
        tags=(outer, inner),
    )


@dataclass(frozen=True, slots=True)
class PeerPlace:
    """Where a slot of `peers` leads."""

    host: str
    nexthop: int


PEER = struct.Struct("=16sHB5x")
"""Address (network order, IPv4 mapped), nexthop, whether the slot leads somewhere."""

assert PEER.size == 24


def pack_peer(place: PeerPlace | None) -> bytes:
    return PEER.pack(pack_host(place.host), place.nexthop, 1) if place else bytes(PEER.size)


ROUTE_KEYS = 32  # slots, one for each key id
ROUTE_KEY = struct.Struct("=16s16sI4x")
"""Tag key, seal key (as SipHash takes them), whether the slot is in use."""

assert ROUTE_KEY.size == 40


def pack_route_key(key: Key | None) -> bytes:
    return ROUTE_KEY.pack(key.tag, key.seal, 1) if key else bytes(ROUTE_KEY.size)


class DatapathError(Exception):
    """The datapath cannot be set up or used; the message names the thing and the mend."""


class FlowTable(Protocol):
    """The map from clients to endpoints."""

    capacity: int

    def get(self, key: FlowKey) -> Flow | None: ...

    def install(self, key: FlowKey, flow: Flow) -> bool:
        """Write a new or re-pointed flow. False when the table is full."""
        ...

    def delete(self, key: FlowKey) -> bool:
        """False when there was none."""
        ...

    def items(self) -> Iterator[tuple[FlowKey, Flow]]:
        """Every flow, read in batches; flows that change meanwhile may be seen or not."""
        ...

    def batches(self) -> Iterator[tuple[bytes, bytes]]:
        """The same, as joined packed keys of one family and their joined packed values."""
        ...


@runtime_checkable
class PackedFlows(FlowTable, Protocol):
    """A flow table that takes keys and flows as the program has them."""

    def install_new(self, key: bytes, flow: bytes) -> bool:
        """Write the first flow of a client. False when it has one, or the table is full."""
        ...


class Datapath(Protocol):
    """One handle on the datapath."""

    @property
    def name(self) -> str:
        """What `status` and the demo print: "xdp-native", "xdp-generic" or "socket"."""
        ...

    @property
    def flows(self) -> FlowTable: ...

    def nexthops(self) -> Mapping[int, Nexthop]:
        """The entries in use, by index."""
        ...

    def write_nexthop(self, index: int, nexthop: Nexthop | None) -> None: ...

    def write_peer(self, slot: int, place: PeerPlace | None) -> None:
        """Say where a slot leads; None: nowhere."""
        ...

    def write_keys(self, keys: Mapping[int, Key]) -> None:
        """Tell the token gate which route keys it accepts, by id: exactly these."""
        ...

    def beat(self, now: int) -> None:
        """Tell the program that the packet process lives at stamp `now` (units), or `NEVER`."""
        ...

    def alive(self) -> int:
        """Stamp of the last beat."""
        ...

    def reasons(self) -> dict[Reason, int]:
        """Counters of the program and, since its last write, of the packet process."""
        ...

    def write_slow_reasons(self, counts: Mapping[Reason, int]) -> None:
        """Publish the packet process's counters (totals, not differences)."""
        ...

    def close(self) -> None:
        """Drop the handle. What is attached stays attached."""
        ...
