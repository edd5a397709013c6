"""What the XDP program is compiled for: the node's VIPs, interfaces, addresses and sizes.

Pure. A spec travels as JSON to the process that compiles, and becomes `-D` flags there (see
`bpf/node.h`). It holds no secrets. Configuration checks its own values; what is checked here is
what the program could not express.
"""

import enum
import ipaddress
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relayctl.datapath.base import LAYOUT, PORTS, DatapathError
from relayctl.wire import spp
from relayctl.wire.address import Address, parse, render

MAX_VIPS = 8  # compared one by one in the program


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
    name: str  # for messages
    ifindex: int
    port: int  # egress port number, 1-63, stable over restarts
    role: Role


@dataclass(frozen=True, slots=True)
class Spec:
    """One node. `own` are further addresses of this host, which no client can have."""

    instance: str
    vips: tuple[Vip, ...]
    interfaces: tuple[Interface, ...]
    inner_address: str
    allow: tuple[ipaddress.IPv4Network, ...]  # of all clusters
    inner_port_base: int = spp.PORT_BASE
    inner_ports: int = spp.PORT_COUNT
    max_flows: int = 262144
    own: tuple[str, ...] = ()
    allow_inner_clients: bool = False
    bpffs: str = "/sys/fs/bpf"

    def __post_init__(self) -> None:
        if not 1 <= len(self.vips) <= MAX_VIPS:
            raise DatapathError(f"{len(self.vips)} VIPs: the program takes 1 to {MAX_VIPS}")
        if not self.allow:
            raise DatapathError("no allowed network: a relay needs one with transceivers in it")
        for interface in self.interfaces:
            if not 1 <= interface.port < PORTS:
                raise DatapathError(
                    f"{interface.name}: egress port {interface.port}, want 1-{PORTS - 1}"
                )

    @property
    def pins(self) -> Path:
        return pin_directory(self.bpffs, self.instance)

    def to_json(self) -> str:
        return json.dumps(
            {
                "instance": self.instance,
                "vips": [[v.id, render(v.public), render(v.local)] for v in self.vips],
                "interfaces": [[i.name, i.ifindex, i.port, i.role] for i in self.interfaces],
                "inner_address": self.inner_address,
                "allow": [str(network) for network in self.allow],
                "inner_port_base": self.inner_port_base,
                "inner_ports": self.inner_ports,
                "max_flows": self.max_flows,
                "own": self.own,
                "allow_inner_clients": self.allow_inner_clients,
                "bpffs": self.bpffs,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """The inverse of `to_json`. Raises `DatapathError`."""
        try:
            fields: dict[str, Any] = json.loads(text)
            vips = [Vip(id, parse(public), parse(local)) for id, public, local in fields["vips"]]
            interfaces = [Interface(n, i, p, Role(role)) for n, i, p, role in fields["interfaces"]]
            allow = [ipaddress.IPv4Network(network) for network in fields["allow"]]
            return cls(
                **fields
                | {
                    "vips": tuple(vips),
                    "interfaces": tuple(interfaces),
                    "allow": tuple(allow),
                    "own": tuple(fields["own"]),
                }
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DatapathError(f"the spec on stdin is unreadable: {error!r}") from error

    def defines(self) -> list[str]:
        """Macros for the compiler, `NAME=text` each; addresses and ports in host order."""
        vips = (_call("V", v.id, *_host_order(v.public), *_host_order(v.local)) for v in self.vips)
        return [
            f'PINS="{self.pins}"',
            f"MAX_FLOWS={self.max_flows}",
            f"VIPS(V)={_join(vips)}",
            f"INTERFACES(I)={_join(_call('I', i.ifindex, _LEGS[i.role]) for i in self.interfaces)}",
            f"ALLOWED(N)={_join(_call('N', *_masked(network)) for network in self.allow)}",
            f"OWN(A)={_join(_call('A', _number(host)) for host in self.own)}",
            f"INNER_ADDRESS={_number(self.inner_address)}",
            f"INNER_PORT_BASE={self.inner_port_base}",
            f"INNER_PORTS={self.inner_ports}",
            f"ALLOW_INNER_CLIENTS={int(self.allow_inner_clients)}",
        ]


def pin_directory(bpffs: str, instance: str) -> Path:
    """Where this version keeps an instance's maps and program. Links lie one level higher."""
    return Path(bpffs) / "ferryline" / instance / f"v{LAYOUT}"


_LEGS = {Role.OUTER: "OUTER_LEG", Role.INNER: "INNER_LEG", Role.BOTH: "(OUTER_LEG | INNER_LEG)"}


def _number(host: str) -> str:
    return f"{int(ipaddress.IPv4Address(host)):#010x}"


def _host_order(address: Address) -> tuple[str, int]:
    return _number(address[0]), address[1]


def _masked(network: ipaddress.IPv4Network) -> tuple[str, str]:
    return _number(str(network.network_address)), _number(str(network.netmask))


def _call(name: str, *arguments: object) -> str:
    return f"{name}({', '.join(map(str, arguments))})"


def _join(calls: Iterable[str]) -> str:
    return " ".join(calls)
