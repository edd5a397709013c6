"""Rules of the relay's configuration that concern more than one key.

Pure. `faults` makes a configuration unusable; `advice` is worth a warning. Each line names the key,
its value and the mend.
"""

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING

from relayctl.datapath.base import PORTS
from relayctl.datapath.spec import MAX_NETWORKS, MAX_VIPS
from relayctl.wire import spp
from relayctl.wire.address import render
from relayctl.wire.cluster import IPV4_PREFIX, Network

if TYPE_CHECKING:
    from relayctl.config import RelayConfig
    from relayctl.wire.fields import ClusterSection

Host = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_INTERFACES = PORTS - 1  # egress port 0 is unused
SOCKET_PATH_BYTES = 107  # sun_path holds 108 with its zero, unix(7)
LOOPBACK = tuple(ipaddress.ip_network(text) for text in ("127.0.0.0/8", "::1/128"))
NEVER_USED = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "fe80::/10",
        "ff00::/8",
    )
)
"""Networks that hold neither clients nor relays nor transceivers."""


def faults(config: "RelayConfig") -> list[str]:
    """Checks that concern more than one key; each fault names key, value and mend."""
    return [
        *_repeated(config),
        *_limit_faults(config),
        *_port_faults(config),
        *_interface_faults(config),
        *_vip_faults(config),
        *_cluster_faults(config),
        *_peer_faults(config),
        *(_transparent_faults(config) if config.inner == "transparent" else _spp_faults(config)),
        *_locality_faults(config),
        *_path_faults(config),
    ]


def _repeated(config: "RelayConfig") -> Iterator[str]:
    columns: dict[str, list[object]] = {
        "vip.id": [vip.id for vip in config.vips],
        "vip.public": [render(vip.public) for vip in config.vips],
        "vip.local": [render(vip.local) for vip in config.vips],
        "interface.name": [interface.name for interface in config.interfaces],
        "cluster.id": [cluster.id for cluster in config.clusters],
        "peer.id": [peer.id for peer in config.peers],
    }
    for key, values in columns.items():
        for value in dict.fromkeys(values):
            if values.count(value) > 1:
                yield f"{key} = {value}: stands {values.count(value)} times; give each its own"


def _limit_faults(config: "RelayConfig") -> Iterator[str]:
    """What the program compares one by one, or has egress ports for."""
    if config.datapath == "socket":
        return
    if len(config.vips) > MAX_VIPS:
        yield (
            f"vip = {len(config.vips)} sections: datapath 'xdp' takes {MAX_VIPS}; run another "
            "instance for the rest"
        )
    if len(config.interfaces) > MAX_INTERFACES:
        yield (
            f"interface = {len(config.interfaces)} sections: datapath 'xdp' takes "
            f"{MAX_INTERFACES}; remove some"
        )
    allowed = sum(len(cluster.allow) for cluster in config.clusters)
    if allowed > MAX_NETWORKS:
        yield (
            f"cluster.allow = {allowed} networks in all: datapath 'xdp' takes {MAX_NETWORKS}; "
            "write larger networks instead of many small ones"
        )


def _port_faults(config: "RelayConfig") -> Iterator[str]:
    ports = config.inner_port_range
    if ports.start < 1024 or ports.stop > 65536:
        yield (
            f"inner_port_base = {ports.start}: ports {ports.start}-{ports[-1]} have to lie in "
            f"1024-65535; the default is {spp.PORT_BASE}"
        )
        return
    for index, vip in enumerate(config.vips):
        if vip.local[0] in config.inner_addresses and vip.local[1] in ports:
            yield (
                f"vip[{index}].local = {render(vip.local)}: is also one of our inner ports "
                f"({vip.local[0]}, {ports.start}-{ports[-1]}); move inner_port_base"
            )


def _interface_faults(config: "RelayConfig") -> Iterator[str]:
    for index, interface in enumerate(config.interfaces):
        if interface.role == "both" and not config.trust_l2:
            yield (
                f"interface[{index}].role = 'both' ({interface.name}): whoever sends on that "
                "network can pose as a transceiver; set trust_l2 = true if nobody else is on it, "
                "else use two interfaces"
            )
    roles = {interface.role for interface in config.interfaces}
    if config.datapath == "xdp" and "both" not in roles and not {"outer", "inner"} <= roles:
        yield (
            f"interface.role = {', '.join(sorted(roles)) or 'none'}: datapath 'xdp' needs an "
            "'outer' and an 'inner' [[interface]], or one that is 'both'"
        )


def _vip_faults(config: "RelayConfig") -> Iterator[str]:
    for index, vip in enumerate(config.vips):
        if is_v6(vip.local[0]) is not is_v6(vip.public[0]):
            yield (
                f"vip[{index}].local = {render(vip.local)}: is of another family than public = "
                f"{render(vip.public)}; give both in one family, and a [[vip]] for each family"
            )


def _cluster_faults(config: "RelayConfig") -> Iterator[str]:
    for index, cluster in enumerate(config.clusters):
        for network in cluster.allow:
            if mend := _outside(network, cluster.prefix):
                yield f"cluster[{index}].allow = {network}: {mend}"


def _outside(network: Network, prefix: ipaddress.IPv6Network) -> str | None:
    """Why a cluster with `prefix` cannot allow `network`, and the mend."""
    if isinstance(network, ipaddress.IPv4Network):
        if prefix == IPV4_PREFIX:
            return None
        return f"is IPv4, and prefix = {prefix}; list IPv6 networks inside it"
    if network.subnet_of(IPV4_PREFIX):
        v4 = (int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96)
        return f"is IPv4 in IPv6 form; write '{ipaddress.IPv4Network(v4)}'"
    if prefix == IPV4_PREFIX:
        wanted = network.supernet(new_prefix=96) if network.prefixlen >= 96 else "<its /96>"
        return f"is IPv6, and prefix is that of IPv4; set prefix = '{wanted}'"
    if not network.subnet_of(prefix):
        return f"is not inside prefix = {prefix}; list networks inside it"
    return None


def _peer_faults(config: "RelayConfig") -> Iterator[str]:
    known = {peer.id for peer in config.peers}
    if config.peers and config.inner == "transparent":
        yield "peer: inner = 'transparent' has no peer relays; set inner = 'spp' or remove [[peer]]"
    for index, cluster in enumerate(config.clusters):
        for id in cluster.via:
            if id not in known:
                yield f"cluster[{index}].via = {id}: no [[peer]] has this id; add one"
    if config.clusters and all(cluster.via for cluster in config.clusters):
        yield "cluster.via: every cluster has it; a relay needs one that it reaches directly"
    theirs: dict[int, str] = {}
    for index, peer in enumerate(config.peers):
        yield from _peer_address_faults(config, f"peer[{index}].address = {peer.address}", index)
        for vip in peer.vips:
            public, at = render(vip.public), f"peer[{index}].vips"
            ours = [each for each in config.vips if each.id == vip.id]
            if ours or any(each.public == vip.public for each in config.vips):
                yield f"{at} = {vip.id}, {public}: is a VIP of ours; list only those that are not"
            if theirs.setdefault(vip.id, public) != public:
                yield f"{at}.id = {vip.id}: is {theirs[vip.id]} elsewhere; one id means one VIP"
            if [each for id, each in theirs.items() if each == public and id != vip.id]:
                yield f"{at}.public = {public}: has two ids; give it one everywhere"


def _peer_address_faults(config: "RelayConfig", what: str, index: int) -> Iterator[str]:
    host = config.peers[index].address
    if any(host == other.address for other in config.peers[:index]):
        yield f"{what}: stands twice; each peer has an inner address of its own"
    if host in {own for _, own in _own_hosts(config)}:
        yield f"{what}: is our own address; give the other relay's"
    if config.inner_addresses and config.inner_address_for(host) is None:
        yield f"{what}: there is no inner_address of its family; add ours"
    for cluster in config.clusters:
        for network in cluster.allow:
            if not cluster.via and ipaddress.ip_address(host) in network:
                yield (
                    f"{what}: is inside cluster {cluster.id}'s allow = {network}; a relay is no "
                    "transceiver, take its address out of there"
                )


def _spp_faults(config: "RelayConfig") -> Iterator[str]:
    if not config.inner_addresses:
        yield "inner_address: missing; give our address on the inner network"
        return
    shown = ", ".join(config.inner_addresses)
    for v6 in sorted({_over_v6(cluster) for cluster in config.clusters if not cluster.via}):
        if all(is_v6(host) is not v6 for host in config.inner_addresses):
            name = "IPv6" if v6 else "IPv4"
            ids = [str(cluster.id) for cluster in config.clusters if _over_v6(cluster) is v6]
            yield (
                f"inner_address = {shown}: cluster {', '.join(ids)} is {name}; add our {name} "
                f'address: inner_address = ["{shown}", "{"fd00::1" if v6 else "10.2.0.1"}"]'
            )


def _transparent_faults(config: "RelayConfig") -> Iterator[str]:
    """Without SPP nothing tells a transceiver which VIP and which family the client sees."""
    if config.datapath != "xdp":
        yield (
            "inner = 'transparent': needs the XDP datapath, but datapath = "
            f"'{config.datapath}'; set datapath = 'xdp' or inner = 'spp'"
        )
    clusters = {_over_v6(cluster) for cluster in config.clusters}
    vips = [is_v6(vip.public[0]) for vip in config.vips]
    for v6, name in ((False, "IPv4"), (True, "IPv6")):
        if vips.count(v6) > 1:
            yield (
                f"vip = {vips.count(v6)} {name} sections: inner = 'transparent' takes one of each "
                "family; run another instance for the rest, or set inner = 'spp'"
            )
        if (v6 in clusters) is not (v6 in vips):
            has, lacks = ("cluster", "[[vip]]") if v6 in clusters else ("vip", "[[cluster]]")
            yield (
                f"{has} = {name}: there is no {name} {lacks}, and inner = 'transparent' mixes no "
                f"families; add one, or set inner = 'spp'"
            )


def _locality_faults(config: "RelayConfig") -> Iterator[str]:
    if config.dev_local:
        yield from _dev_local_faults(config)
    else:
        for key, host in _own_hosts(config):
            if is_loopback(host):
                yield (
                    f"{key} = {host}: is a loopback address, which nobody else reaches; give "
                    "another, or set dev_local = true and datapath = 'socket' on a laptop"
                )
    for index, cluster in enumerate(config.clusters):
        for network in cluster.allow:
            for never in (*NEVER_USED, *(() if config.dev_local else LOOPBACK)):
                if network.overlaps(never):
                    yield (
                        f"cluster[{index}].allow = {network}: overlaps {never}, where no "
                        "transceiver may be; list the transceivers' own networks"
                    )


def _dev_local_faults(config: "RelayConfig") -> Iterator[str]:
    for key, host in _own_hosts(config):
        if not ipaddress.ip_address(host).is_private:
            yield (
                f"{key} = {host}: dev_local = true is for loopback and private addresses; give "
                "one, or set dev_local = false"
            )
    if config.datapath != "socket":
        yield (
            f"dev_local = true: needs the socket datapath, but datapath = '{config.datapath}'; "
            "set datapath = 'socket'"
        )


def _own_hosts(config: "RelayConfig") -> Iterator[tuple[str, str]]:
    """Key and host of each address that we bind or announce."""
    for host in config.inner_addresses:
        yield "inner_address", host
    for index, vip in enumerate(config.vips):
        yield f"vip[{index}].public", vip.public[0]
        if vip.local != vip.public:
            yield f"vip[{index}].local", vip.local[0]


def _path_faults(config: "RelayConfig") -> Iterator[str]:
    size = len(str(config.socket_path).encode())
    if size > SOCKET_PATH_BYTES:
        yield (
            f"run_dir = '{config.run_dir}': {config.socket_path.name} in it makes a path of {size} "
            f"bytes, a unix socket takes {SOCKET_PATH_BYTES}; use a shorter one"
        )


def advice(config: "RelayConfig", local_ports: tuple[int, int]) -> list[str]:
    """What is allowed but likely wrong. `local_ports` is net.ipv4.ip_local_port_range."""
    notes = []
    ports = config.inner_port_range
    if config.inner_addresses and overlap(ports, local_ports):
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


def is_v6(host: str) -> bool:
    """Whether IP text is IPv6."""
    return ":" in host


def _over_v6(cluster: "ClusterSection") -> bool:
    return cluster.prefix != IPV4_PREFIX


def is_loopback(host: str) -> bool:
    ip = ipaddress.ip_address(host)
    return any(ip in network for network in LOOPBACK)
