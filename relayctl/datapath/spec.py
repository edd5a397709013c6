"""What the XDP program is compiled for: the node's VIPs, interfaces, addresses and sizes.

Pure. A spec travels as JSON to the process that compiles, and becomes `-D` flags there (see
`bpf/node.h`). It holds no secrets. Configuration checks its own values; what is checked here is
what the program could not express.
"""

import dataclasses
import enum
import ipaddress
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relayctl.datapath.base import LAYOUT, PORTS, DatapathError
from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.cluster import IPV4_PREFIX, Cluster, Network

MAX_VIPS = 8  # compared one by one in the program
MAX_NETWORKS = 256  # allowed ones, of all clusters; likewise
MAX_INTERFACES = 32  # likewise
MAX_VLAN = 4094


class Role(enum.StrEnum):
    """Which leg an interface may bring."""

    OUTER = "outer"
    INNER = "inner"
    BOTH = "both"


class Mode(enum.StrEnum):
    """Where an interface runs the program: in its driver, or behind it and several times slower."""

    NATIVE = "native"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Vip:
    id: int
    public: Address
    local: Address


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface of the node. A VLAN device is the one whose routes and neighbours count
    (`ifindex`), but frames with its `tags` arrive at its `carrier`, which runs the program."""

    name: str  # for messages
    ifindex: int
    port: int  # egress port number, 1-63, stable over restarts
    role: Role
    own_carrier: int = 0  # ifindex; 0: itself
    tags: tuple[int, int] = (0, 0)  # VLAN ids, outer first; 0 = none

    @property
    def carrier(self) -> int:
        return self.own_carrier or self.ifindex


@dataclass(frozen=True, slots=True)
class Spec:
    """One node. `own` are further addresses of this host, which no client can have.

    `inner_addresses`: at most one of each family, none if `transparent`, where endpoints see their
    clients' own addresses."""

    instance: str
    vips: tuple[Vip, ...]
    interfaces: tuple[Interface, ...]
    inner_addresses: tuple[str, ...]
    clusters: tuple[Cluster, ...]
    inner_port_base: int = spp.PORT_BASE
    inner_ports: int = spp.PORT_COUNT
    max_flows: int = 262144
    max_flows_v6: int = 65536
    own: tuple[str, ...] = ()
    allow_inner_clients: bool = False
    transparent: bool = False
    peers: tuple[tuple[int, str], ...] = ()  # id and inner address
    foreign_vips: tuple[tuple[int, Address, tuple[int, ...]], ...] = ()
    """VIPs of peers: id, public address, and which peers serve it."""
    mode: Mode = Mode.NATIVE
    bpffs: str = "/sys/fs/bpf"

    def __post_init__(self) -> None:
        if not 1 <= len(self.vips) <= MAX_VIPS:
            raise DatapathError(f"{len(self.vips)} VIPs: the program takes 1 to {MAX_VIPS}")
        networks = sum(len(cluster.allow) for cluster in self.clusters)
        if not networks:
            raise DatapathError("no allowed network: a relay needs one with transceivers in it")
        if networks > MAX_NETWORKS:
            raise DatapathError(f"{networks} allowed networks: the program takes {MAX_NETWORKS}")
        if len(self.interfaces) > MAX_INTERFACES:
            raise DatapathError(
                f"{len(self.interfaces)} interfaces: the program takes {MAX_INTERFACES}"
            )
        for interface in self.interfaces:
            if not 1 <= interface.port < PORTS:
                raise DatapathError(
                    f"{interface.name}: egress port {interface.port}, want 1-{PORTS - 1}"
                )
            if not all(0 <= tag <= MAX_VLAN for tag in interface.tags):
                raise DatapathError(f"{interface.name}: VLAN ids {interface.tags}, want 1-4094")

    @property
    def pins(self) -> Path:
        return pin_directory(self.bpffs, self.instance)

    @property
    def prefixes(self) -> dict[int, bytes]:
        """IPv6 clusters by id, as the program and `unpack_flow` need them."""
        return {
            cluster.id: cluster.prefix.network_address.packed[:12]
            for cluster in self.clusters
            if cluster.prefix != IPV4_PREFIX
        }

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """The inverse of `to_json`. Raises `DatapathError`."""
        try:
            fields: dict[str, Any] = json.loads(text)
            return cls(
                **fields
                | {
                    "vips": tuple(_vip(each) for each in fields["vips"]),
                    "interfaces": tuple(_interface(each) for each in fields["interfaces"]),
                    "inner_addresses": tuple(fields["inner_addresses"]),
                    "clusters": tuple(_cluster(each) for each in fields["clusters"]),
                    "own": tuple(fields["own"]),
                    "peers": tuple((id, host) for id, host in fields["peers"]),
                    "foreign_vips": tuple(
                        (id, (host, port), tuple(holders))
                        for id, (host, port), holders in fields["foreign_vips"]
                    ),
                    "mode": Mode(fields["mode"]),
                }
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DatapathError(f"the spec on stdin is unreadable: {error!r}") from error

    def defines(self) -> list[str]:
        """Macros for the compiler, `NAME=text` each; addresses and ports in host order."""
        interfaces = (
            _call("I", i.carrier, f"{i.tags[0] << 16 | i.tags[1]:#x}", _LEGS[i.role])
            for i in self.interfaces
        )
        clusters = (_call("C", id, *_words_of(p)) for id, p in self.prefixes.items())
        return [
            f'PINS="{self.pins}"',
            f"MAX_FLOWS={self.max_flows}",
            f"MAX_FLOWS_V6={self.max_flows_v6}",
            *_by_family("VIPS", "V", [(vip.public[0], _vip_arguments(vip)) for vip in self.vips]),
            f"INTERFACES(I)={_join(interfaces)}",
            f"CLUSTERS_V6(C)={_join(clusters)}",
            *_by_family("ALLOWED", "N", [_allowed(n, c) for c in self.clusters for n in c.allow]),
            *_by_family("OWN", "A", [(host, _words(host)) for host in self.own]),
            *_by_family("INNER", "A", [(host, _words(host)) for host in self.inner_addresses]),
            f"INNER_PORT_BASE={self.inner_port_base}",
            f"INNER_PORTS={self.inner_ports}",
            f"ALLOW_INNER_CLIENTS={int(self.allow_inner_clients)}",
            f"TRANSPARENT={int(self.transparent)}",
            f"HAS_PEERS={int(bool(self.peers))}",
            *_by_family("PEERS", "P", [(host, (id, *_words(host))) for id, host in self.peers]),
            *_by_family("FOREIGN", "V", [_foreign(*vip) for vip in self.foreign_vips]),
        ]


def pin_directory(bpffs: str | Path, instance: str) -> Path:
    """Where this version keeps an instance's maps and program. Links lie one level higher."""
    return Path(bpffs) / "ferryline" / instance / f"v{LAYOUT}"


_LEGS = {Role.OUTER: "OUTER_LEG", Role.INNER: "INNER_LEG", Role.BOTH: "(OUTER_LEG | INNER_LEG)"}


def _vip(fields: dict[str, Any]) -> Vip:
    (public, public_port), (local, local_port) = fields["public"], fields["local"]
    return Vip(fields["id"], (public, public_port), (local, local_port))


def _interface(fields: dict[str, Any]) -> Interface:
    outer, inner = fields["tags"]
    return Interface(**fields | {"role": Role(fields["role"]), "tags": (outer, inner)})


def _cluster(fields: dict[str, Any]) -> Cluster:
    first, last = fields["ports"]
    return Cluster(
        fields["id"],
        tuple(ipaddress.ip_network(network) for network in fields["allow"]),
        ipaddress.IPv6Network(fields["prefix"]),
        (first, last),
    )


def _words_of(packed: bytes) -> tuple[str, ...]:
    """Words in host order."""
    return tuple(f"0x{packed[at : at + 4].hex()}" for at in range(0, len(packed), 4))


def _words(host: str) -> tuple[str, ...]:
    """One word, or four for IPv6."""
    return _words_of(ipaddress.ip_address(host).packed)


def _vip_arguments(vip: Vip) -> tuple[object, ...]:
    (public, public_port), (local, local_port) = vip.public, vip.local
    return vip.id, *_words(public), public_port, *_words(local), local_port


def _foreign(id: int, public: Address, holders: tuple[int, ...]) -> tuple[str, tuple[object, ...]]:
    """`peer` is the program's name for who sent the packet; 0 = an endpoint."""
    served = " || ".join(f"peer == {holder}" for holder in (0, *holders))
    return public[0], (id, *_words(public[0]), public[1], f"({served})")


def _allowed(network: Network, cluster: Cluster) -> tuple[str, tuple[object, ...]]:
    host = str(network.network_address)
    return host, (*_words(host), *_words(str(network.netmask)), *cluster.ports)


def _by_family(
    name: str, call: str, entries: Sequence[tuple[str, tuple[object, ...]]]
) -> list[str]:
    """Two macros that list the calls of each family; an entry is host and arguments."""
    v4 = (_call(call, *arguments) for host, arguments in entries if ":" not in host)
    v6 = (_call(call, *arguments) for host, arguments in entries if ":" in host)
    return [f"{name}_V4({call})={_join(v4)}", f"{name}_V6({call})={_join(v6)}"]


def _call(name: str, *arguments: object) -> str:
    return f"{name}({', '.join(map(str, arguments))})"


def _join(calls: Iterable[str]) -> str:
    return " ".join(calls)
