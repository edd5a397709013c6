"""A flow: which transceiver endpoint owns the packets of one client address, and its life.

Pure. The layout is that of `bpf/flow.h`; tests compare sizes and offsets.
"""

import enum
import functools
import struct
from collections.abc import Mapping
from typing import NamedTuple

from relayctl.wire.address import Address, pack_host, unpack_host

UNIT_NS = 1 << 30  # one unit of a stamp, 1.07 s
NEW_LIFE = 5  # units a flow may stay unconfirmed
CLIENT_IDLE = 28  # units without client packets, 30 s
ENDPOINT_IDLE = 10  # units without endpoint packets, 10 s

CONFIRMED = 0x01  # flag: the endpoint sent something other than STUN


def units(monotonic_ns: int) -> int:
    """Stamp of an instant of CLOCK_MONOTONIC, as the XDP program makes it."""
    return (monotonic_ns >> 30) & 0xFFFFFFFF


class FlowKey(NamedTuple):
    """Who sends: the client's address and the id of the VIP it sends to."""

    client: Address
    vip: int


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


KEY_V4 = struct.Struct("=4s2sH")  # client address, port (both network order), VIP id
KEY_V6 = struct.Struct("=16s2sH4x")
VALUE = struct.Struct("=8s4s2sHHH2sBBIIIIIIIIQQ")
"""token · host, port (network order), cluster · nexthop in, out, sport (network order), back,
flags · seen_up, seen_down, ssrc (network order as read), contended · packets up, down · born,
answers · bytes up, down."""

assert KEY_V4.size == 8
assert KEY_V6.size == 24
assert VALUE.size == 72

MAPPED = bytes(10) + b"\xff\xff"  # the prefix of IPv4-mapped addresses, RFC 4291 section 2.5.5.2

Prefixes = Mapping[int, bytes]
"""Cluster id → the first 12 bytes of its endpoints' addresses. IPv4 clusters need no entry."""


@functools.lru_cache(maxsize=1024)  # of one first packet: looked up, installed, remembered
def pack_key(key: FlowKey) -> bytes:
    """8 bytes for an IPv4 client, 24 for an IPv6 one."""
    host, port = key.client
    packed, number = pack_host(host), port.to_bytes(2, "big")
    if packed.startswith(MAPPED):
        return KEY_V4.pack(packed[12:], number, key.vip)
    return KEY_V6.pack(packed, number, key.vip)


def unpack_key(packed: bytes) -> FlowKey:
    if len(packed) == KEY_V4.size:
        host, port, vip = KEY_V4.unpack(packed)
        host = MAPPED + host
    else:
        host, port, vip = KEY_V6.unpack(packed)
    return FlowKey((unpack_host(host), int.from_bytes(port, "big")), vip)


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
    return Flow(
        endpoint=(unpack_host(prefixes.get(cluster, MAPPED) + host), int.from_bytes(port, "big")),
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
