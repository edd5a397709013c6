"""What a frame says, as far as the relay reads it: the first four steps of its decision.

Pure. `parse` finds addresses and ports, `Packet.is_whole` compares the lengths, `Packet.is_odd`
tells what only the kernel can handle.
"""

import functools
import ipaddress
import struct
from dataclasses import dataclass

from relayctl.wire.address import Address
from tests.oracle.frame import IPV4, IPV6, PROVIDER, UDP, VLAN

MORE_FRAGMENTS, FRAGMENT_OFFSET = 0x2000, 0x1FFF
EXTENSIONS = frozenset({0, 43, 44, 51, 60})
"""Hop-by-hop, routing, fragment, authentication, destination options."""


@functools.lru_cache(maxsize=65536)
def text(packed: bytes) -> str:
    """Of 4 or 16 bytes. On the wire of IPv6 a mapped address is no IPv4 address."""
    return ".".join(map(str, packed)) if len(packed) == 4 else str(ipaddress.IPv6Address(packed))


@dataclass(frozen=True, slots=True)
class Packet:
    """IPv4 or IPv6 with UDP inside. Offsets count from the start of the frame."""

    frame: bytes
    tags: tuple[int, int]  # VLAN ids, outer first; 0 = none
    source: str
    destination: str
    ports: tuple[int, int] | None  # None: the frame shows no UDP header
    tos: int
    ttl: int
    ip_length: int  # bytes, header included
    ip_end: int
    udp_at: int
    is_fragment: bool
    has_extras: bool  # IPv4 options or IPv6 extension headers
    is_readable: bool = True  # the IPv4 header is as long as it has to be

    @property
    def is_v6(self) -> bool:
        return ":" in self.destination

    @property
    def client(self) -> Address:
        """Source address and port, of a packet that shows ports."""
        assert self.ports
        return self.source, self.ports[0]

    @property
    def udp_length(self) -> int:
        return int.from_bytes(self.frame[self.udp_at + 4 : self.udp_at + 6], "big")

    @property
    def sum(self) -> int:
        """The UDP checksum as it stands there."""
        return int.from_bytes(self.frame[self.udp_at + 6 : self.udp_at + 8], "big")

    @property
    def payload(self) -> bytes:
        """What the datagram carries, of a packet that is whole and shows ports."""
        return self.frame[self.udp_at + 8 : self.udp_at + self.udp_length]

    @property
    def padding(self) -> bytes:
        """What stands behind the IP packet."""
        return self.frame[self.ip_end :]

    def is_whole(self) -> bool:
        """Whether frame, IP and UDP length agree. A fragment or an extension header hides the
        UDP length, so there it is enough that something is inside."""
        if not self.is_readable or self.ip_end > len(self.frame):
            return False
        if self.is_fragment or (self.is_v6 and self.has_extras):
            return self.udp_at < self.ip_end
        return bool(self.ports) and 8 <= self.udp_length <= self.ip_end - self.udp_at

    def is_odd(self) -> bool:
        """Of a whole packet: the kernel can do more with it than the relay."""
        if self.is_fragment or self.has_extras or self.ttl <= 1:
            return True
        return self.udp_at + self.udp_length != self.ip_end or (self.is_v6 and not self.sum)


def parse(frame: bytes) -> Packet | None:
    """None: neither IPv4 nor IPv6 with UDP behind at most two VLAN tags."""
    ids: list[int] = []
    for at in (12, 16, 20):
        kind = int.from_bytes(frame[at : at + 2], "big")
        if kind == IPV4:
            return _ipv4(frame, at + 2, ids)
        if kind == IPV6:
            return _ipv6(frame, at + 2, ids)
        if kind not in (VLAN, PROVIDER) or len(frame) < at + 4:
            return None
        ids.append(int.from_bytes(frame[at + 2 : at + 4], "big") & 0xFFF)
    return None


def _ids(ids: list[int]) -> tuple[int, int]:
    outer, inner = (*(id for id in ids if id), 0, 0)[:2]  # 0 is a priority alone
    return outer, inner


def _ipv4(frame: bytes, at: int, ids: list[int]) -> Packet | None:
    if len(frame) < at + 20 or frame[at] >> 4 != 4 or frame[at + 9] != UDP:
        return None
    ip_length, _, fragment, ttl = struct.unpack_from("!HHHB", frame, at + 2)
    words = frame[at] & 15
    udp_at = at + words * 4
    shows = words >= 5 and not fragment & FRAGMENT_OFFSET and len(frame) >= udp_at + 8
    return Packet(
        frame=frame,
        tags=_ids(ids),
        source=text(frame[at + 12 : at + 16]),
        destination=text(frame[at + 16 : at + 20]),
        ports=struct.unpack_from("!HH", frame, udp_at) if shows else None,
        tos=frame[at + 1],
        ttl=ttl,
        ip_length=ip_length,
        ip_end=at + ip_length,
        udp_at=udp_at,
        is_fragment=bool(fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET)),
        has_extras=words > 5,
        is_readable=words >= 5,
    )


def _ipv6(frame: bytes, at: int, ids: list[int]) -> Packet | None:
    if len(frame) < at + 40 or frame[at] >> 4 != 6:
        return None
    first, length, kind, ttl = struct.unpack_from("!IHBB", frame, at)
    udp_at = at + 40
    is_extended = kind in EXTENSIONS
    if is_extended:
        following = frame[udp_at : udp_at + 1]  # where it is cut off, it may be UDP
        kind = UDP if not following or following[0] in EXTENSIONS else following[0]
    if kind != UDP:
        return None
    shows = not is_extended and len(frame) >= udp_at + 8
    return Packet(
        frame=frame,
        tags=_ids(ids),
        source=text(frame[at + 8 : at + 24]),
        destination=text(frame[at + 24 : at + 40]),
        ports=struct.unpack_from("!HH", frame, udp_at) if shows else None,
        tos=first >> 20 & 0xFF,
        ttl=ttl,
        ip_length=40 + length,
        ip_end=udp_at + length,
        udp_at=udp_at,
        is_fragment=False,
        has_extras=is_extended,
    )
