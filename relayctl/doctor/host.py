"""What the checks look at, as plain values: links, addresses, routes. `host_reader` reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relayctl.wire.cluster import Network


@dataclass(frozen=True, slots=True)
class Channels:
    """Queues that carry packets both ways, or one way where the driver has them apart."""

    used: int
    most: int


@dataclass(frozen=True, slots=True)
class Link:
    """A network interface. `peer` is the index of a veth's other end, or of the interface below a
    VLAN device, if it is in this namespace."""

    index: int
    name: str
    up: bool = True
    mtu: int = 1500
    kind: str = ""
    peer: int | None = None
    program: int | None = None  # id of the XDP program
    mode: str = ""  # how it is attached
    queues: int = 1  # for sending
    driver: str = ""  # empty if it does not say
    channels: Channels | None = None
    features: frozenset[str] = frozenset()  # ethtool's names, those that are on
    promiscuous: bool = False  # by hand, or since somebody listens


@dataclass(frozen=True, slots=True)
class Route:
    interface: str
    gateway: str | None = None
    failed: bool = False  # the kernel could not resolve the neighbour


@dataclass(frozen=True, slots=True)
class Host:
    links: tuple[Link, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)  # host -> interface, both families
    routes: Mapping[Network, Route | None] = field(default_factory=dict)  # by allowed network

    def link(self, name: str) -> Link | None:
        return next((link for link in self.links if link.name == name), None)

    def carrier(self, link: Link) -> Link:
        """What carries the program for `link`: itself, or the interface below its VLANs."""
        while link.kind == "vlan" and (below := self.by_index(link.peer)):
            link = below
        return link

    def by_index(self, index: int | None) -> Link | None:
        return next((link for link in self.links if link.index == index), None)
