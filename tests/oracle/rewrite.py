"""The frame that has to come out when the relay carries a packet. Pure.

A right checksum comes out as made from nothing over what was written; a wrong one stays wrong, by
the same difference, since nobody may mend what got damaged on the way (RFC 1624).
"""

import struct
from dataclasses import replace

from relayctl.datapath.base import Nexthop
from relayctl.wire.address import Address
from tests.oracle.frame import Shape, build, checksum, tags_of, udp_checksum
from tests.oracle.parse import Packet

IPV4_HEADER, IPV6_HEADER = 20, 40  # bytes


def with_headers(
    packet: Packet, nexthop: Nexthop, source: Address, destination: Address, payload: bytes
) -> bytes:
    """Under new headers, with DSCP and ECN of the old ones: the leg with SPP."""
    shape = Shape(
        macs=(nexthop.destination_mac, nexthop.source_mac),
        tags=tags_of(nexthop.tags),
        ttl=packet.ttl - 1,
        tos=packet.tos,
        sum=_updated_sum(packet, source, destination, payload),
        padding=packet.padding,
    )
    return build(source, destination, payload, shape)


def readdressed(packet: Packet, nexthop: Nexthop, source: Address, destination: Address) -> bytes:
    """The same packet between other addresses: the transparent way."""
    shape = Shape(
        macs=(nexthop.destination_mac, nexthop.source_mac),
        tags=tags_of(nexthop.tags),
        ttl=packet.ttl - 1,
        tos=packet.tos,
        sum=_updated_sum(packet, source, destination, packet.payload),
        padding=packet.padding,
    )
    at = packet.udp_at - (IPV6_HEADER if packet.is_v6 else IPV4_HEADER)
    if packet.is_v6:
        label = int.from_bytes(packet.frame[at : at + 4], "big") & 0xFFFFF
        return build(source, destination, packet.payload, replace(shape, flow_label=label))
    id, fragment = struct.unpack_from("!HH", packet.frame, at + 4)
    shape = replace(shape, id=id, fragment=fragment)
    frame = build(source, destination, packet.payload, shape)
    error = _header_error(packet.frame[at : packet.udp_at])
    sum_at = 14 + 4 * len(shape.tags) + 10
    found = (int.from_bytes(frame[sum_at : sum_at + 2], "big") + error) % 0xFFFF
    return frame[:sum_at] + found.to_bytes(2, "big") + frame[sum_at + 2 :]


def ip_length(destination: Address, payload: bytes) -> int:
    """Bytes of the IP packet that carries `payload` there."""
    return (IPV6_HEADER if ":" in destination[0] else IPV4_HEADER) + 8 + len(payload)


def _updated_sum(packet: Packet, source: Address, destination: Address, payload: bytes) -> int:
    if not packet.sum:
        return 0
    assert packet.ports
    before = (packet.source, packet.ports[0]), (packet.destination, packet.ports[1])
    error = packet.sum - udp_checksum(*before, packet.payload)
    return (udp_checksum(source, destination, payload) + error) % 0xFFFF or 0xFFFF


def _header_error(header: bytes) -> int:
    """A wrong checksum of an IPv4 header stays wrong as well, where the header stays."""
    return int.from_bytes(header[10:12], "big") - checksum(header[:10] + b"\0\0" + header[12:])
