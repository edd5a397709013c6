"""Reads `Host` from this network namespace by netlink and ethtool. I/O only, no judgement."""

import ctypes
import fcntl
import socket
import struct
from collections.abc import Mapping
from typing import Any

from pyroute2 import IPRoute
from pyroute2.ethtool import Ethtool

from relayctl.config import RelayConfig
from relayctl.doctor.host import Channels, Host, Link, Route
from relayctl.wire.cluster import Network

_XDP_MODES = {"xdp": "native", "xdpgeneric": "generic", "xdpoffload": "offloaded"}
_NEIGHBOUR_FAILED = 0x20  # NUD_FAILED
_SIOCETHTOOL = 0x8946
_GDRVINFO = 3  # ETHTOOL_GDRVINFO
_DRIVER = struct.Struct("=I32s160x")  # struct ethtool_drvinfo: command, driver, what we do not read


def read(config: RelayConfig) -> Host:
    """The host as it is in this network namespace."""
    ethtool = Ethtool()
    with IPRoute() as netlink:
        links = tuple(_link(message, ethtool) for message in netlink.get_links())
        names = {link.index: link.name for link in links}
        addresses = {
            message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS"): names.get(
                message["index"], "?"
            )
            for message in netlink.get_addr()
        }
        networks = {network for cluster in config.clusters for network in cluster.allow}
        routes = {
            network: _route(netlink, probe_address(network, addresses), names)
            for network in networks
        }
    ethtool.close()
    return Host(links, addresses, routes)


def probe_address(network: Network, own: Mapping[str, str]) -> str:
    """The first host of `network` that is not ourselves."""
    hosts = (str(ip) for ip in network.hosts())
    return next((host for host in hosts if host not in own), str(network.network_address))


def _link(message: Any, ethtool: Any) -> Link:
    name = message.get_attr("IFLA_IFNAME")
    info = message.get_attr("IFLA_LINKINFO")
    xdp = message.get_attr("IFLA_XDP")
    mode: str = (xdp.get_attr("IFLA_XDP_ATTACHED") if xdp is not None else None) or ""
    elsewhere = message.get_attr("IFLA_LINK_NETNSID") is not None
    return Link(
        index=message["index"],
        name=name,
        up=bool(message["flags"] & 1),
        mtu=message.get_attr("IFLA_MTU"),
        kind=(info.get_attr("IFLA_INFO_KIND") if info is not None else "") or "",
        peer=None if elsewhere else message.get_attr("IFLA_LINK"),
        program=xdp.get_attr("IFLA_XDP_PROG_ID") if mode else None,
        mode=_XDP_MODES.get(mode, mode),
        queues=message.get_attr("IFLA_NUM_TX_QUEUES") or 1,
        driver=_driver(name),
        channels=_channels(ethtool, name),
        features=_features(ethtool, name),
        promiscuous=bool(message.get_attr("IFLA_PROMISCUITY")),
    )


def _driver(name: str) -> str:
    """By ioctl: /sys may show the interfaces of another network namespace."""
    answer = bytearray(_DRIVER.pack(_GDRVINFO, b""))
    buffer = (ctypes.c_char * len(answer)).from_buffer(answer)
    request = struct.pack("16sP16x", name.encode(), ctypes.addressof(buffer))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock, _SIOCETHTOOL, request)
        except OSError:  # it has no ethtool operations
            return ""
    return str(_DRIVER.unpack(answer)[1].rstrip(b"\0").decode())


def _channels(ethtool: Any, name: str) -> Channels | None:
    try:
        found = ethtool.get_channels(name)
    except Exception:  # pyroute2 raises several kinds for a device without ethtool operations
        return None
    used = (found.combined_count or 0) + (found.tx_count or 0)
    return Channels(used, (found.max_combined or 0) + (found.max_tx or 0)) if used else None


def _features(ethtool: Any, name: str) -> frozenset[str]:
    try:
        features = ethtool.get_features(name)
    except Exception:  # likewise
        return frozenset()
    return frozenset(key for key, feature in features.features.items() if feature.enable)


def _route(netlink: Any, host: str, names: Mapping[int, str]) -> Route | None:
    try:
        [message] = netlink.route("get", dst=host)
    except Exception:  # netlink's own error when nothing leads there
        return None
    interface, gateway = message.get_attr("RTA_OIF"), message.get_attr("RTA_GATEWAY")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    neighbours = netlink.get_neighbours(family=family, ifindex=interface, dst=gateway or host)
    failed = any(neighbour["state"] & _NEIGHBOUR_FAILED for neighbour in neighbours)
    return Route(names.get(interface, "?"), gateway, failed)
