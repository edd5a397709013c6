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
from relayctl.datapath.maps import flow_shapes
from relayctl.peers import IDS, Peer
from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.fields import AbsolutePath, ClusterSection, RedisUrl
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


def _to_hosts(value: object) -> tuple[str, ...]:
    """One address, several with commas between (as in a variable), or a list."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ValueError("want an address as text, or a list with one of each family")
    hosts = tuple(str(_unicast(part.strip())) for part in parts)
    for v6, family in ((False, "IPv4"), (True, "IPv6")):
        if sum(config_rules.is_v6(host) is v6 for host in hosts) > 1:
            raise ValueError(f"has more than one {family} address; keep one of each family")
    return hosts


Hosts = Annotated[tuple[str, ...], pydantic.BeforeValidator(_to_hosts)]


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
    def _is_unicast(cls, value: Address | None) -> Address | None:
        if value is not None:
            _unicast(value[0])
        return value


class Interface(Settings):
    """A network interface, and the leg or legs it may bring. It may be a VLAN device such as
    `eth0.10`: then the interface below carries the program."""

    name: str
    role: Literal["outer", "inner", "both"]

    @pydantic.field_validator("name")
    @classmethod
    def _is_interface_name(cls, value: str) -> str:
        if not _INTERFACE.fullmatch(value):
            raise ValueError("is no interface name; `ip link` lists them, 1-15 characters each")
        return value


class ClusterVia(ClusterSection):
    """A cluster of the relay: reached directly, or by way of the peer relays in `via`."""

    via: tuple[int, ...] = ()


class PeerVip(Settings):
    """A VIP that a peer relay serves and we do not."""

    id: int
    public: Endpoint

    @pydantic.field_validator("id")
    @classmethod
    def _id_fits_keys(cls, value: int) -> int:
        return _within(value, VIP_IDS)


class PeerSection(Settings):
    """Another relay. `address` is its inner one; `admin` answers GET /readyz."""

    id: int
    address: str
    admin: Endpoint
    vips: tuple[PeerVip, ...] = ()

    @pydantic.field_validator("id")
    @classmethod
    def _id_fits_slots(cls, value: int) -> int:
        return _within(value, IDS)

    @pydantic.field_validator("address")
    @classmethod
    def _is_host(cls, value: str) -> str:
        return str(_unicast(value))


class RelayConfig(Settings):
    """Everything `relayctl serve` needs. Sections keep their TOML names in the singular."""

    instance: Annotated[str, _says("Name of pins, lock and socket.")]
    datapath: Annotated[Literal["xdp", "socket"], _says("Who forwards known flows.")] = "xdp"
    xdp_mode: Annotated[
        Literal["native", "generic"], _says("How the program is attached; generic is slow.")
    ] = "native"
    keys_file: Annotated[AbsolutePath, _says("Route keys, one `<id> <64 hex digits>` a line.")]
    max_flows: Annotated[int, _says("Flows of IPv4 clients, about 150 bytes each.")] = 262144
    max_flows_v6: Annotated[int, _says("Flows of IPv6 clients, about 160 bytes each.")] = 65536
    inner: Annotated[
        Literal["spp", "transparent"], _says("What transceivers get: SPP, or plain UDP.")
    ] = "spp"
    inner_addresses: Annotated[
        Hosts, pydantic.Field(alias="inner_address", description="Ours on the inner network.")
    ] = ()
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
    redis: Annotated[
        RedisUrl | None, pydantic.Field(repr=False, description="Keeps flows for every relay.")
    ] = None
    vips: Annotated[tuple[Vip, ...], pydantic.Field(alias="vip")]
    interfaces: Annotated[tuple[Interface, ...], pydantic.Field(alias="interface")] = ()
    clusters: Annotated[tuple[ClusterVia, ...], pydantic.Field(alias="cluster")]
    peers: Annotated[tuple[PeerSection, ...], pydantic.Field(alias="peer")] = ()

    def relays(self) -> list[Peer]:
        """Peer relays as packets know them."""
        return [
            Peer(each.id, each.address, {vip.public: vip.id for vip in each.vips})
            for each in self.peers
        ]

    def via(self) -> dict[int, tuple[int, ...]]:
        """Clusters that are reached by peers only, and by which."""
        return {each.id: each.via for each in self.clusters if each.via}

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

    def inner_address_for(self, host: str) -> str | None:
        """Our inner address of the same family as `host`."""
        return next(
            (
                own
                for own in self.inner_addresses
                if config_rules.is_v6(own) is config_rules.is_v6(host)
            ),
            None,
        )

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

    @pydantic.field_validator("max_flows", "max_flows_v6")
    @classmethod
    def _fits_memory(cls, value: int, info: pydantic.ValidationInfo) -> int:
        if value not in MAX_FLOWS:
            v4, v6 = flow_shapes(max(1, value), max(1, value))
            shape = v6 if info.field_name == "max_flows_v6" else v4
            raise ValueError(
                f"would take {megabytes(shape.memory(cpus=1))}; "
                f"choose {MAX_FLOWS.start}-{MAX_FLOWS[-1]}, about 150 bytes each"
            )
        return value

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


def _unicast(host: str) -> config_rules.Host:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        raise ValueError("is no IP address; give one such as '10.2.0.1' or 'fd00::1'") from None
    if ip.version == 6 and ip.ipv4_mapped:
        raise ValueError(f"is IPv4 in IPv6 form; write '{ip.ipv4_mapped}'")
    if (ip.version == 6 and ip.scope_id) or any(ip in each for each in config_rules.NEVER_USED):
        raise ValueError("is no unicast address; give one that a host can have")
    return ip


def flow_table_bytes(max_flows: int, max_flows_v6: int) -> int:
    """Kernel memory of the two flow maps, which are allocated whole."""
    return sum(shape.memory(cpus=1) for shape in flow_shapes(max_flows, max_flows_v6))


def flow_tables(config: RelayConfig) -> str:
    """What the flow tables take, for people: it is told before it is taken."""
    size = flow_table_bytes(config.max_flows, config.max_flows_v6)
    return (
        f"flow tables: {megabytes(size)} for {config.max_flows} + {config.max_flows_v6} flows "
        "(IPv4 + IPv6 clients)"
    )


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
