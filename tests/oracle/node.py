"""The relay nodes that the oracle knows, as configuration would describe them, and their world.

Pure. Each node is compiled once and meets all scenes; between them they have every kind of VIP,
cluster, interface and option that changes a decision.
"""

import functools
import ipaddress
from dataclasses import dataclass

from relayctl.address_policy import AddressPolicy
from relayctl.datapath.base import Nexthop, PeerPlace
from relayctl.datapath.spec import Role, Vip
from relayctl.peers import BACK, Peer, Peers
from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.cluster import Cluster, Clusters
from relayctl.wire.route_token import Key

KEYS = {id: Key(id, bytes(range(id, id + 32))) for id in (1, 5, 31)}
UNKNOWN_KEY = Key(6, bytes(range(32)))

CLUSTERS = (
    Cluster(7, (ipaddress.ip_network("10.2.0.0/24"), ipaddress.ip_network("10.77.0.0/16"))),
    Cluster(9, (ipaddress.ip_network("10.5.0.0/30"),), ports=(4000, 6000)),
    Cluster(
        8,
        (ipaddress.ip_network("fd00:2::/112"), ipaddress.ip_network("fd00:2::900:0/104")),
        ipaddress.IPv6Network("fd00:2::/96"),
    ),
    Cluster(
        300,
        (ipaddress.ip_network("2001:db8:300::/96"),),
        ipaddress.IPv6Network("2001:db8:300::/96"),
        ports=(4000, 6000),
    ),
)
_OWNERS = Clusters(CLUSTERS)


def cluster_of(endpoint: Address) -> int:
    """Id of the cluster that has it; 0, which no cluster has, for a stranger."""
    return _OWNERS.owner(endpoint) or 0


@dataclass(frozen=True, slots=True)
class Link:
    """An interface with a role, carried by one of the devices `outer`, `inner` and `both`."""

    carrier: str
    role: Role
    tags: tuple[int, int] = (0, 0)  # VLAN ids, outer first; 0 = none

    @property
    def name(self) -> str:
        return ".".join([self.carrier, *(str(tag) for tag in self.tags if tag)])


CARRIERS = ("outer", "inner", "both")
LINKS = (
    Link("outer", Role.OUTER),
    Link("inner", Role.INNER),
    Link("both", Role.BOTH),
    Link("outer", Role.INNER, (10, 0)),
    Link("inner", Role.OUTER, (20, 0)),
    Link("both", Role.BOTH, (4094, 30)),
)
ROLELESS = "lo"  # a device that the program has no role for

VIPS = (
    Vip(1, ("203.0.113.10", 3478), ("203.0.113.10", 3478)),
    Vip(2, ("203.0.113.99", 443), ("10.9.8.7", 3478)),  # behind a 1:1 NAT
    Vip(3, ("2001:db8:1::10", 3478), ("2001:db8:1::10", 3478)),
    Vip(4095, ("2001:db8:1::99", 443), ("fd00:9::7", 3479)),
)
INNER = ("10.2.0.1", "fd00:2::1")
OWN = ("10.3.0.2", "2001:db8:3::2")


@dataclass(frozen=True, slots=True)
class Node:
    """One relay."""

    name: str
    vips: tuple[Vip, ...] = VIPS
    inner: tuple[str, ...] = INNER  # at most one per family
    own: tuple[str, ...] = OWN
    inner_clients: bool = False
    transparent: bool = False
    has_peers: bool = False

    @property
    def peers(self) -> Peers:
        return Peers(PEERS if self.has_peers else ())

    @property
    def theirs(self) -> tuple[Vip, ...]:
        """The VIPs of peers."""
        return tuple(Vip(id, public, public) for id, public in self.peers.public.items())

    @property
    def ours(self) -> frozenset[str]:
        """Every address of this host and every one that stands for it."""
        vips = (address[0] for vip in self.vips for address in (vip.public, vip.local))
        return frozenset((*vips, *self.inner, *self.own))

    @functools.lru_cache  # noqa: B019 - nodes live for ever
    def policy(self) -> AddressPolicy:
        """It keeps no state but what it remembers."""
        inner = [(host, port) for host in (*self.inner, *self.own) for port in INNER_PORTS]
        sockets = [address for vip in self.vips for address in (vip.public, vip.local)]
        return AddressPolicy(CLUSTERS, [*sockets, *inner], inner_clients=self.inner_clients)


INNER_PORTS = range(spp.PORT_BASE, spp.PORT_BASE + spp.PORT_COUNT)

NODES = {
    node.name: node
    for node in (
        Node("spp"),
        Node("lab", inner_clients=True),  # clients may live where transceivers do
        Node("shared", inner=("203.0.113.10", "2001:db8:1::10"), vips=VIPS[::2]),
        Node("peers", has_peers=True),
        Node("transparent", vips=(VIPS[1], VIPS[3]), inner=(), transparent=True),
    )
}

_MACS = bytes.fromhex("020000000201"), bytes.fromhex("020000000202")
UNUSED, PLAIN, TAGGED, STACKED, UNRESOLVED, SMALL, PORTLESS = range(7)
SMALL_MTU = 576
NEXTHOPS = {
    PLAIN: Nexthop(1, "10.2.0.2", True, 1500, *_MACS),
    TAGGED: Nexthop(2, "10.2.0.3", True, 1500, *_MACS[::-1], (20, 0)),
    STACKED: Nexthop(3, "fd00:2::4", True, 9000, *_MACS, (4094, 30)),
    UNRESOLVED: Nexthop(1, "10.2.0.5"),
    SMALL: Nexthop(1, "10.2.0.6", True, SMALL_MTU, *_MACS),
    PORTLESS: Nexthop(50, "10.2.0.7", True, 1500, *_MACS),
}
"""What stands in the nexthop table of every scene, by index."""

_THEIRS, _THEIRS_V6 = ("203.0.113.20", 3478), ("2001:db8:1::20", 3478)
PEERS = (
    Peer(2, "10.2.1.1", {_THEIRS: 20}),
    Peer(3, "fd00:4::1", {_THEIRS: 20, _THEIRS_V6: 21}),
    Peer(5, "10.2.1.5", {}),
)
BEHIND_PEERS = 70  # a cluster
PLACES = {
    2: PeerPlace("10.2.1.1", PLAIN),
    3: PeerPlace("fd00:4::1", TAGGED),
    5: PeerPlace("10.2.1.1", UNRESOLVED),
    BACK + 2: PeerPlace("10.2.1.1", SMALL),
    BACK + 3: PeerPlace("fd00:4::1", STACKED),
}
"""Where the slots of peers lead; 4 nowhere."""

PORTS = dict(enumerate(LINKS, 1))
"""Egress ports."""
