"""Rules of the relay's configuration that concern more than one key.

Pure. `faults` makes a configuration unusable; `advice` is worth a warning. Each line names the key,
its value and the mend.
"""

import ipaddress
from typing import TYPE_CHECKING

from relayctl.datapath.base import PORTS
from relayctl.datapath.spec import MAX_VIPS
from relayctl.wire import spp
from relayctl.wire.address import render

if TYPE_CHECKING:
    from relayctl.config import RelayConfig

MAX_INTERFACES = PORTS - 1  # egress port 0 is unused
SOCKET_PATH_BYTES = 107  # sun_path holds 108 with its zero, unix(7)
LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")
NEVER_USED = tuple(
    ipaddress.IPv4Network(text)
    for text in ("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")
)
"""Networks that hold neither clients nor relays nor transceivers."""


def faults(config: "RelayConfig") -> list[str]:
    """Checks that concern more than one key; each fault names key, value and mend."""
    return [
        *_repeated(config),
        *_vip_count_faults(config),
        *_port_faults(config),
        *_interface_faults(config),
        *_locality_faults(config),
        *_path_faults(config),
    ]


def _repeated(config: "RelayConfig") -> list[str]:
    columns: dict[str, list[object]] = {
        "vip.id": [vip.id for vip in config.vips],
        "vip.public": [render(vip.public) for vip in config.vips],
        "vip.local": [render(vip.local) for vip in config.vips],
        "interface.name": [interface.name for interface in config.interfaces],
        "cluster.id": [cluster.id for cluster in config.clusters],
    }
    return [
        f"{key} = {value}: stands {values.count(value)} times; give each its own"
        for key, values in columns.items()
        for value in dict.fromkeys(values)
        if values.count(value) > 1
    ]


def _vip_count_faults(config: "RelayConfig") -> list[str]:
    if config.datapath == "socket" or len(config.vips) <= MAX_VIPS:
        return []
    return [
        f"vip = {len(config.vips)} sections: datapath 'xdp' takes {MAX_VIPS}; run another instance "
        "for the rest"
    ]


def _port_faults(config: "RelayConfig") -> list[str]:
    ports = config.inner_port_range
    if ports.start < 1024 or ports.stop > 65536:
        return [
            f"inner_port_base = {ports.start}: ports {ports.start}-{ports[-1]} have to lie in "
            f"1024-65535; the default is {spp.PORT_BASE}"
        ]
    return [
        f"vip.local = {render(vip.local)}: is also one of our inner ports "
        f"({config.inner_address}, {ports.start}-{ports[-1]}); move inner_port_base"
        for vip in config.vips
        if vip.local[0] == config.inner_address and vip.local[1] in ports
    ]


def _interface_faults(config: "RelayConfig") -> list[str]:
    found = [
        f"interface.role = 'both' ({interface.name}): whoever sends on that network can pose as a "
        "transceiver; set trust_l2 = true if nobody else is on it, else use two interfaces"
        for interface in config.interfaces
        if interface.role == "both" and not config.trust_l2
    ]
    if len(config.interfaces) > MAX_INTERFACES:
        found.append(
            f"interface = {len(config.interfaces)} sections: at most {MAX_INTERFACES}; remove some"
        )
    roles = {interface.role for interface in config.interfaces}
    if config.datapath == "xdp" and "both" not in roles and not {"outer", "inner"} <= roles:
        found.append(
            f"interface.role = {', '.join(sorted(roles)) or 'none'}: datapath 'xdp' needs an "
            "'outer' and an 'inner' [[interface]], or one that is 'both'"
        )
    return found


def _locality_faults(config: "RelayConfig") -> list[str]:
    loopback = [] if config.dev_local else [LOOPBACK]
    if config.dev_local:
        found = _dev_local_faults(config)
    else:
        found = [
            f"{key} = {host}: is a loopback address, which nobody else reaches; give another, or "
            "set dev_local = true and datapath = 'socket' on a laptop"
            for key, host in _own_hosts(config)
            if is_loopback(host)
        ]
    return found + [
        f"cluster[{index}].allow = {network}: overlaps {never}, where no transceiver may be; list "
        "the transceivers' own networks"
        for index, cluster in enumerate(config.clusters)
        for network in cluster.allow
        for never in (*NEVER_USED, *loopback)
        if network.overlaps(never)
    ]


def _dev_local_faults(config: "RelayConfig") -> list[str]:
    found = [
        f"{key} = {host}: dev_local = true is for loopback and private addresses; give one, or set "
        "dev_local = false"
        for key, host in _own_hosts(config)
        if not ipaddress.IPv4Address(host).is_private
    ]
    if config.datapath != "socket":
        found.append(
            f"dev_local = true: needs the socket datapath, but datapath = '{config.datapath}'; "
            "set datapath = 'socket'"
        )
    return found


def _own_hosts(config: "RelayConfig") -> list[tuple[str, str]]:
    """Key and host of each address that we bind or announce."""
    public = [("vip.public", vip.public[0]) for vip in config.vips]
    local = [("vip.local", vip.local[0]) for vip in config.vips if vip.local != vip.public]
    return [("inner_address", config.inner_address), *public, *local]


def _path_faults(config: "RelayConfig") -> list[str]:
    size = len(str(config.socket_path).encode())
    if size <= SOCKET_PATH_BYTES:
        return []
    return [
        f"run_dir = '{config.run_dir}': {config.socket_path.name} in it makes a path of {size} "
        f"bytes, a unix socket takes {SOCKET_PATH_BYTES}; use a shorter one"
    ]


def advice(config: "RelayConfig", local_ports: tuple[int, int]) -> list[str]:
    """What is allowed but likely wrong. `local_ports` is net.ipv4.ip_local_port_range."""
    notes = []
    ports = config.inner_port_range
    if overlap(ports, local_ports):
        notes.append(
            f"inner_port_base = {ports.start}: {ports.start}-{ports[-1]} meets the ports the "
            f"kernel hands out ({local_ports[0]}-{local_ports[1]}); choose lower ones, or "
            f"sysctl -w net.ipv4.ip_local_reserved_ports={ports.start}-{ports[-1]}"
        )
    if config.dev_local:
        notes.append("dev_local = true: endpoints on loopback are allowed; never on a server")
    if config.datapath == "xdp" and config.xdp_mode == "generic":
        notes.append("xdp_mode = 'generic': several times slower than 'native'")
    return notes


def overlap(ports: range, handed_out: tuple[int, int]) -> bool:
    """Does any of `ports` lie within first and last of `handed_out`?"""
    return ports.start <= handed_out[1] and ports[-1] >= handed_out[0]


def is_loopback(host: str) -> bool:
    return ipaddress.IPv4Address(host) in LOOPBACK
