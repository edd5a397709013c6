"""The relay's configuration: the sections of its TOML file, each key checked.

Pure: values in, one frozen value or `SettingsError` out. Rules that concern more than one key stand
in `config_rules`; what depends on the host (interfaces that exist, free memory) is the doctor's
business.
"""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from relayctl import config_rules
from relayctl.datapath import maps
from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.cluster import IPV4_PREFIX, Network
from relayctl.wire.fields import AbsolutePath, ClusterSection
from relayctl.wire.settings import Endpoint, Settings

ENVIRONMENT = "FERRYLINE_RELAY_"  # prefix of the variables that override the file

VIP_IDS = range(1, 4096)
MAX_FLOWS = range(16, (1 << 24) + 1)
MAX_INNER_PORTS = 64
BPFFS = Path("/sys/fs/bpf")
RUN_DIR = Path("/run/ferryline")
ADMIN = ("127.0.0.1", 9100)

_INSTANCE = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")  # bpffs refuses names with a dot
_INTERFACE = re.compile(r"[^\s/:]{1,15}")  # IFNAMSIZ is 16 with its zero


def _says(text: str) -> Any:
    """What a key means, for `serve --help`."""
    return pydantic.Field(description=text)


class Vip(Settings):
    """A public address and port. `local` is what arrives on the wire behind a 1:1 NAT."""

    id: int
    public: Endpoint
    own_local: Annotated[Endpoint | None, pydantic.Field(alias="local")] = None

    @property
    def local(self) -> Address:
        return self.own_local or self.public

    @pydantic.field_validator("id")
    @classmethod
    def _id_fits_keys(cls, value: int) -> int:
        return _within(value, VIP_IDS)

    @pydantic.field_validator("public", "own_local")
    @classmethod
    def _is_unicast_v4(cls, value: Address | None) -> Address | None:
        if value is not None:
            _unicast_v4(value[0])
        return value


class Interface(Settings):
    """A network interface that carries the program, and the leg or legs it may bring."""

    name: str
    role: Literal["outer", "inner", "both"]

    @pydantic.field_validator("name")
    @classmethod
    def _is_interface_name(cls, value: str) -> str:
        if not _INTERFACE.fullmatch(value):
            raise ValueError("is no interface name; `ip link` lists them, 1-15 characters each")
        return value


class RelayCluster(ClusterSection):
    """A cluster that the IPv4 datapath can reach."""

    @pydantic.field_validator("prefix")
    @classmethod
    def _is_v4_prefix(cls, value: ipaddress.IPv6Network) -> ipaddress.IPv6Network:
        if value != IPV4_PREFIX:
            raise ValueError(f"IPv6 inner networks are not carried yet; write '{IPV4_PREFIX}'")
        return value

    @pydantic.field_validator("allow")
    @classmethod
    def _allows_v4(cls, value: tuple[Network, ...]) -> tuple[Network, ...]:
        for network in value:
            if network.version != 4:
                raise ValueError(f"'{network}' is outside the prefix; list IPv4 networks")
        return value


class RelayConfig(Settings):
    """Everything `relayctl serve` needs. Sections keep their TOML names in the singular."""

    instance: Annotated[str, _says("Name of pins, lock and socket.")]
    datapath: Annotated[Literal["xdp", "socket"], _says("Who forwards known flows.")] = "xdp"
    xdp_mode: Annotated[
        Literal["native", "generic"], _says("How the program is attached; generic is slow.")
    ] = "native"
    keys_file: Annotated[AbsolutePath, _says("Route keys, one `<id> <64 hex digits>` a line.")]
    max_flows: Annotated[int, _says("Flows the table holds, about 150 bytes each.")] = 262144
    inner_address: Annotated[str, _says("Our address on the inner network.")]
    inner_port_base: Annotated[int, _says("First of our inner UDP ports.")] = spp.PORT_BASE
    inner_ports: Annotated[int, _says("Number of inner ports, a power of two.")] = spp.PORT_COUNT
    allow_inner_clients: Annotated[bool, _says("Take clients from allowed networks; for labs.")] = (
        False
    )
    trust_l2: Annotated[bool, _says("Nobody else is on our networks; for role 'both'.")] = False
    dev_local: Annotated[bool, _says("Endpoints on loopback; with the socket datapath.")] = False
    bpffs: Annotated[AbsolutePath, _says("Mount point of the bpf file system.")] = BPFFS
    run_dir: Annotated[AbsolutePath, _says("Directory of lock and socket.")] = RUN_DIR
    admin: Annotated[Endpoint, _says("HTTP for health, metrics and reading, <ip>:<port>.")] = ADMIN
    vips: Annotated[tuple[Vip, ...], pydantic.Field(alias="vip")]
    interfaces: Annotated[tuple[Interface, ...], pydantic.Field(alias="interface")] = ()
    clusters: Annotated[tuple[RelayCluster, ...], pydantic.Field(alias="cluster")]

    @property
    def pins(self) -> Path:
        """Directory of everything this instance pins; versioned directories lie below it."""
        return self.bpffs / "ferryline" / self.instance

    @property
    def lock_path(self) -> Path:
        return self.run_dir / f"{self.instance}.lock"

    @property
    def socket_path(self) -> Path:
        """Unix socket of the control API."""
        return self.run_dir / f"{self.instance}.sock"

    @property
    def inner_port_range(self) -> range:
        return range(self.inner_port_base, self.inner_port_base + self.inner_ports)

    @pydantic.field_validator("instance")
    @classmethod
    def _names_files(cls, value: str) -> str:
        if not _INSTANCE.fullmatch(value):
            raise ValueError("names files; use 1-32 characters of a-z, 0-9, '-' and '_'")
        return value

    @pydantic.field_validator("vips", "clusters")
    @classmethod
    def _is_not_empty(cls, value: tuple[Settings, ...]) -> tuple[Settings, ...]:
        if not value:
            raise ValueError("the relay needs at least one; add a section")
        return value

    @pydantic.field_validator("max_flows")
    @classmethod
    def _fits_memory(cls, value: int) -> int:
        if value not in MAX_FLOWS:
            raise ValueError(
                f"would take {megabytes(flow_table_bytes(value))}; "
                f"choose {MAX_FLOWS.start}-{MAX_FLOWS[-1]}, about 150 bytes each"
            )
        return value

    @pydantic.field_validator("inner_address")
    @classmethod
    def _is_unicast_v4(cls, value: str) -> str:
        return str(_unicast_v4(value))

    @pydantic.field_validator("inner_ports")
    @classmethod
    def _is_power_of_two(cls, value: int) -> int:
        if not 1 <= value <= MAX_INNER_PORTS or value & (value - 1):
            raise ValueError("has to be a power of two up to 64; the default is 16")
        return value

    @pydantic.model_validator(mode="after")
    def _agrees(self) -> "RelayConfig":
        faults = config_rules.faults(self)
        if faults:
            raise ValueError("\n".join(faults))
        return self


def _within(value: int, allowed: range) -> int:
    if value not in allowed:
        raise ValueError(f"is outside {allowed.start}-{allowed[-1]}; choose one of these")
    return value


def _unicast_v4(host: str) -> ipaddress.IPv4Address:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        raise ValueError("is no IP address; give one such as '10.2.0.1'") from None
    if not isinstance(ip, ipaddress.IPv4Address):
        raise ValueError("IPv6 is not carried yet; give an IPv4 address")
    if any(ip in network for network in config_rules.NEVER_USED):
        raise ValueError("is no unicast address; give one that a host can have")
    return ip


def flow_table_bytes(max_flows: int) -> int:
    """Kernel memory of the flow map, which is allocated whole."""
    flow_map, *_ = maps.shapes(max(1, max_flows))
    return flow_map.memory(cpus=1)


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
