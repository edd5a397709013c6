"""A flow: which transceiver endpoint owns the packets of one client address, and its life.

Pure. The layout is that of `bpf/flow.h`; tests compare sizes and offsets.
"""

import enum
import struct
from collections.abc import Mapping
from typing import NamedTuple

from relayctl.wire.address import MAPPED, V4_SIZE, Address, pack, pack_host, unpack, unpack_host

UNIT_NS = 1 << 30  # one unit of a stamp, 1.07 s
NEW_LIFE = 5  # units a flow may stay unconfirmed
CLIENT_IDLE = 28  # units without client packets, 30 s
ENDPOINT_IDLE = 7  # units without endpoint packets: forgotten by a sweep within 10 s

CONFIRMED = 0x01  # flag: the endpoint sent something other than STUN
TO_PEER = 0x02  # flag: the endpoint is a peer relay's slot, see `peer_place`
_PEER_NET = "0.0.0."  # where no endpoint can be


def units(monotonic_ns: int) -> int:
    """Stamp of an instant of CLOCK_MONOTONIC, as the XDP program makes it."""
    return (monotonic_ns >> 30) & 0xFFFFFFFF


def peer_place(slot: int, port: int) -> Address:
    """The endpoint of a flow that goes by the peer relay in this slot, to that port of it."""
    return f"{_PEER_NET}{slot}", port


def slot_of(endpoint: Address) -> int:
    """The inverse of `peer_place`; 0 for an endpoint of its own."""
    host = endpoint[0]
    return int(host[len(_PEER_NET) :]) if host.startswith(_PEER_NET) else 0


KEY_V4 = struct.Struct("=6sH")  # client's address and port (network order), VIP id
KEY_V6 = struct.Struct("=18sH4x")

assert KEY_V4.size == 8
assert KEY_V6.size == 24


def pack_key(client: bytes, vip: int) -> bytes:
    """What a `FlowKey` is made of, for a packed client."""
    return (KEY_V4 if len(client) == V4_SIZE else KEY_V6).pack(client, vip)


class FlowKey(bytes):
    """Who sends: the client's address and the id of the VIP it sends to.

    These are the very bytes of the map's key, 8 for an IPv4 client and 24 for an IPv6 one; an
    address as people read it is made when somebody asks.
    """

    __slots__ = ()

    def __new__(cls, client: Address, vip: int) -> "FlowKey":
        return cls.of(pack(client), vip)

    @classmethod
    def of(cls, client: bytes, vip: int) -> "FlowKey":
        """The key of a packed client."""
        return bytes.__new__(cls, pack_key(client, vip))

    @classmethod
    def read(cls, key: bytes) -> "FlowKey":
        """A key as the map has it."""
        return bytes.__new__(cls, key)

    @property
    def is_v6(self) -> bool:
        return len(self) == KEY_V6.size

    @property
    def host(self) -> bytes:
        """The client's compact address."""
        return self[:16] if self.is_v6 else self[:4]

    @property
    def packed_client(self) -> bytes:
        return self[:18] if self.is_v6 else self[:6]

    @property
    def client(self) -> Address:
        return unpack(self.packed_client)

    @property
    def vip(self) -> int:
        vip: int = (KEY_V6 if self.is_v6 else KEY_V4).unpack(self)[1]
        return vip

    def __repr__(self) -> str:
        return f"FlowKey({self.client}, {self.vip})"


class State(enum.StrEnum):
    NEW = "new"
    CONFIRMED = "confirmed"


class Expiry(enum.StrEnum):
    """Why a flow ended."""

    UNCONFIRMED = "unconfirmed"
    CLIENT_SILENT = "client_silent"
    ENDPOINT_SILENT = "endpoint_silent"


class Flow(NamedTuple):
    """One entry of the flow table.

    Stamps (`seen_up`, `seen_down`, `contended`, `born`) are in units; 0 = never. Byte counters
    hold UDP payload as the client sees it. After install only the datapath changes an entry.
    """

    endpoint: Address
    cluster: int
    sport: int  # our inner source port
    token: bytes = bytes(8)  # first 8 characters of the route token; zeros = unknown
    nexthop_in: int = 0  # towards the endpoint; index 0 is never valid
    nexthop_out: int = 0  # towards the client
    back: int = 0  # peer relay that delivered the last client packet; 0 = none
    flags: int = 0
    seen_up: int = 0
    seen_down: int = 0
    ssrc: int = 0  # the client's first RTP source; 0 = none yet
    contended: int = 0
    packets_up: int = 0
    packets_down: int = 0
    born: int = 0
    answers: int = 0  # the program's count of punted answers while contended
    bytes_up: int = 0
    bytes_down: int = 0

    @property
    def state(self) -> State:
        return State.CONFIRMED if self.flags & CONFIRMED else State.NEW

    @property
    def slot(self) -> int:
        """The peer relay that the flow goes by; 0 = none."""
        return slot_of(self.endpoint) if self.flags & TO_PEER else 0


def expiry(flow: Flow, now: int) -> Expiry | None:
    """Why `flow` is over at stamp `now` (units), or None while it lives."""
    if flow.state is State.NEW:
        return Expiry.UNCONFIRMED if _age(now, flow.born) > NEW_LIFE else None
    if _age(now, flow.seen_up or flow.born) > CLIENT_IDLE:
        return Expiry.CLIENT_SILENT
    if _age(now, flow.seen_down or flow.born) > ENDPOINT_IDLE:
        return Expiry.ENDPOINT_SILENT
    return None


def idle(flow: Flow, now: int) -> int:
    """Units since the client's last packet."""
    return _age(now, flow.seen_up or flow.born)


def _age(now: int, stamp: int) -> int:
    return max(0, now - stamp)  # a stamp of this very unit may be ahead of a `now` read before it


VALUE = struct.Struct("=8s4s2sHHH2sBBIIIIIIIIQQ")
"""token · host, port (network order), cluster · nexthop in, out, sport (network order), back,
flags · seen_up, seen_down, ssrc (network order as read), contended · packets up, down · born,
answers · bytes up, down."""

assert VALUE.size == 72

Prefixes = Mapping[int, bytes]
"""Cluster id → the first 12 bytes of its endpoints' addresses. IPv4 clusters need no entry."""


def pack_flow(flow: Flow) -> bytes:
    host, port = flow.endpoint
    return VALUE.pack(
        flow.token,
        pack_host(host)[12:],
        port.to_bytes(2, "big"),
        flow.cluster,
        flow.nexthop_in,
        flow.nexthop_out,
        flow.sport.to_bytes(2, "big"),
        flow.back,
        flow.flags,
        flow.seen_up,
        flow.seen_down,
        _swap32(flow.ssrc),
        flow.contended,
        flow.packets_up,
        flow.packets_down,
        flow.born,
        flow.answers,
        flow.bytes_up,
        flow.bytes_down,
    )


def unpack_flow(packed: bytes, prefixes: Prefixes) -> Flow:
    (token, host, port, cluster, nexthop_in, nexthop_out, sport, back, flags, *rest) = VALUE.unpack(
        packed
    )
    seen_up, seen_down, ssrc, contended, packets_up, packets_down, born, answers, up, down = rest
    prefix = MAPPED if flags & TO_PEER else prefixes.get(cluster, MAPPED)
    return Flow(
        endpoint=(unpack_host(prefix + host), int.from_bytes(port, "big")),
        cluster=cluster,
        sport=int.from_bytes(sport, "big"),
        token=token,
        nexthop_in=nexthop_in,
        nexthop_out=nexthop_out,
        back=back,
        flags=flags,
        seen_up=seen_up,
        seen_down=seen_down,
        ssrc=_swap32(ssrc),
        contended=contended,
        packets_up=packets_up,
        packets_down=packets_down,
        born=born,
        answers=answers,
        bytes_up=up,
        bytes_down=down,
    )


def _swap32(value: int) -> int:
    """The program stores the SSRC as it stands in the packet: network order."""
    return int.from_bytes(value.to_bytes(4, "big"), "little")
