"""Preflight checks of addresses, routes and the sysctls that decide who answers for a VIP.

Values in, results out; sysctls come from the tree below `proc`.
"""

from pathlib import Path

from relayctl import config_rules
from relayctl.config import Interface, RelayConfig
from relayctl.doctor.host import Host, Route
from relayctl.doctor.result import Result, fail, ok, skip, warn
from relayctl.wire.address import render
from relayctl.wire.cluster import Network


def vip_present(config: RelayConfig, host: Host) -> list[Result]:
    """The packet process binds each VIP, so the node has to own its address."""
    results = []
    for vip in config.vips:
        name, local = f"vip:{vip.id}", vip.local[0]
        if local in host.addresses:
            results.append(ok(name, f"{render(vip.local)} on {host.addresses[local]}"))
        elif config_rules.is_loopback(local):
            results.append(ok(name, f"{render(vip.local)} is loopback"))
        else:
            length = "128 dev lo nodad" if config_rules.is_v6(local) else "32 dev lo"
            mend = f"ip address add {local}/{length}"
            results.append(fail(name, f"{local} is on no interface", mend))
    return results


def inner_addresses(config: RelayConfig, host: Host) -> list[Result]:
    """Our own on the inner network."""
    return [_inner_address(address, host) for address in config.inner_addresses]


def _inner_address(address: str, host: Host) -> Result:
    name, interface = f"inner-address:{address}", host.addresses.get(address)
    if config_rules.is_loopback(address):
        return ok(name, "is loopback")
    if interface is None:
        length = 64 if config_rules.is_v6(address) else 24
        return fail(
            name, "is on no interface", f"ip address add {address}/{length} dev <inner one>"
        )
    return ok(name, f"on {interface}")


def arp(interface: Interface, config: RelayConfig, host: Host, proc: Path) -> list[Result]:
    """A VIP on lo must not be claimed in ARP on this interface: two relays would fight for it."""
    vips = {vip.local[0] for vip in config.vips if not config_rules.is_v6(vip.local[0])}
    elsewhere = sorted(vip for vip in vips if host.addresses.get(vip) != interface.name)
    results = []
    for key, want, fault in (
        ("arp_announce", 2, "asks for neighbours in the name of a VIP"),
        ("arp_ignore", 1, "answers for VIPs of other interfaces"),
    ):
        name = f"{key}:{interface.name}"
        value = _sysctl(proc, interface.name, key)
        if not elsewhere:
            results.append(skip(name, "no IPv4 VIP on another interface"))
        elif value >= want:
            results.append(ok(name, str(value)))
        else:
            mend = f"sysctl -w net.ipv4.conf.{_dotless(interface.name)}.{key}={want}"
            results.append(warn(name, f"{value}: {fault}", mend))
    return results


def reverse_path(interface: Interface, proc: Path) -> Result:
    """Strict mode drops first packets (they pass the kernel) while known flows go on."""
    name = f"rp_filter:{interface.name}"
    value = _sysctl(proc, interface.name, "rp_filter")
    if value != 1:
        return ok(name, str(value))
    return warn(
        name,
        "1, strict: clients whose way back is another interface cannot begin a call",
        "sysctl -w net.ipv4.conf.all.rp_filter=0 "
        f"net.ipv4.conf.{_dotless(interface.name)}.rp_filter=2",
    )


def _dotless(name: str) -> str:
    """A VLAN device's name as sysctl(8) wants it: eth0/10."""
    return name.replace(".", "/")


def _sysctl(proc: Path, interface: str, key: str) -> int:
    """The kernel takes the larger of the interface's value and that of `all`."""
    values = [proc / "sys/net/ipv4/conf" / each / key for each in ("all", interface)]
    return max((int(path.read_text()) for path in values if path.exists()), default=0)


def inner_ports(config: RelayConfig, proc: Path) -> Result:
    """Inner ports that the kernel also hands out collide with somebody's socket one day."""
    name = "inner-ports"
    if not config.inner_addresses:
        return skip(name, "inner = 'transparent' uses none")
    low, high = map(int, (proc / "sys/net/ipv4/ip_local_port_range").read_text().split())
    ours = config.inner_port_range
    shown = f"{ours.start}-{ours[-1]}"
    if not config_rules.overlap(ours, (low, high)):
        return ok(name, f"{shown}, below or above {low}-{high}")
    reserved = proc / "sys/net/ipv4/ip_local_reserved_ports"
    if reserved.exists() and all(port in _ports(reserved.read_text()) for port in ours):
        return ok(name, f"{shown}, reserved")
    return warn(
        name,
        f"{shown} meets {low}-{high}, which the kernel hands out",
        f"sysctl -w net.ipv4.ip_local_reserved_ports={shown}",
    )


def _ports(text: str) -> set[int]:
    ports: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            ports |= set(range(int(first), int(last or first) + 1))
    return ports


def routes(config: RelayConfig, host: Host) -> list[Result]:
    """Every allowed network is reached by an inner interface."""
    networks = {network for cluster in config.clusters for network in cluster.allow}
    return [
        _route(network, host.routes.get(network), config) for network in sorted(networks, key=str)
    ]


def _route(network: Network, route: Route | None, config: RelayConfig) -> Result:
    name = f"route:{network}"
    if route is None:
        return fail(name, "no route leads there", f"ip route add {network} via <gateway>")
    roles = {interface.name: interface.role for interface in config.interfaces}
    way = f"{route.interface}{f' via {route.gateway}' if route.gateway else ''}"
    if config.datapath == "xdp" and roles.get(route.interface) not in ("inner", "both"):
        return fail(
            name,
            f"leads to {way}, which is no inner interface",
            f"ip route replace {network} dev <inner one>, or mend [[interface]]",
        )
    if route.failed:
        return warn(name, f"{way}: the neighbour does not answer", "ping it; is it up?")
    return ok(name, way)
