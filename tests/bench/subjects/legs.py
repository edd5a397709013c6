"""The ways through a relay that the bench knows. Pure."""

import struct

from tests.bench import wire
from tests.bench.sink import Watch
from tests.bench.subjects.base import Leg
from tests.bench.wire import ENDPOINT_PORT, VIP, Family

SPP_SIZE = 38
MIXES: tuple[tuple[Family, Family], ...] = ((4, 6), (6, 4), (6, 6))  # clients, endpoints
_PROTOCOL_AT: dict[Family, int] = {4: 23, 6: 20}
_UDP_AT: dict[Family, int] = {4: 34, 6: 54}


def forward(outer: Family = 4, inner: Family = 4, *, spp: bool = True, payload: bytes = b"") -> Leg:
    """Clients to the endpoint; with `spp` the relay puts a header in front of the payload."""
    frame = wire.from_client(outer, payload or wire.rtp())
    grows = SPP_SIZE if spp else 0
    length = _UDP_AT[inner] - _UDP_AT[outer] + grows
    return Leg(
        frame, "gen0", "sink0", to_port(inner, ENDPOINT_PORT, frame.stamp_at + length), length
    )


def back(outer: Family = 4, inner: Family = 4) -> Leg:
    """The endpoint to clients, in SPP headers that the relay takes away."""
    frame = wire.from_endpoint(outer, inner, wire.rtp())
    shrinks = SPP_SIZE + _UDP_AT[inner] - _UDP_AT[outer]
    return Leg(frame, "sink0", "gen0", from_vip(outer, frame.stamp_at - shrinks), -shrinks)


def back_plain(family: Family = 4) -> Leg:
    """The endpoint to clients, as a router would carry it."""
    frame = wire.from_plain_endpoint(family, wire.rtp())
    return Leg(frame, "sink0", "gen0", from_vip(family, frame.stamp_at))


def untouched(leg: Leg) -> Leg:
    """`leg` through something that changes no byte of the datagram."""
    frame = leg.frame
    family: Family = 4 if frame.data[12:14] == b"\x08\x00" else 6
    source, destination = struct.unpack_from("!HH", frame.data, _UDP_AT[family])
    if destination:
        return Leg(frame, leg.enters, leg.leaves, to_port(family, destination, frame.stamp_at))
    watch = Watch(_PROTOCOL_AT[family], _UDP_AT[family], source, frame.stamp_at)
    return Leg(frame, leg.enters, leg.leaves, watch)  # it goes to the client, whose port varies


def to_port(family: Family, port: int, stamp_at: int) -> Watch:
    return Watch(_PROTOCOL_AT[family], _UDP_AT[family] + 2, port, stamp_at)


def from_vip(family: Family, stamp_at: int) -> Watch:
    return Watch(_PROTOCOL_AT[family], _UDP_AT[family], VIP[family][1], stamp_at)
