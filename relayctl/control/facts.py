"""Netlink messages of links, routes, neighbours and addresses as facts. Pure.

A message is what pyroute2 makes of the bytes: a mapping with `get_attr`. What says nothing about
forwarding gives no fact: multicast, local and cached routes, tables other than the main one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from relayctl.control.link import CUSTOMER_TAG, ELSEWHERE, Link, Vlan
from relayctl.control.network import KernelHop, KernelRoute

_MAIN_TABLE = 254
_UNICAST = 1  # RTN_UNICAST
_UNREACHABLE = (6, 7, 8)  # RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT
_CLONED = 0x200  # RTM_F_CLONED
_IFF_UP, _IFF_LOWER_UP = 0x1, 0x10000
_RTNH_DEAD, _RTNH_LINKDOWN = 0x1, 0x10
_NUD_KNOWN = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80  # reachable to permanent
_NUD_FAILED = 0x20
_NUD_FIXED = 0x40 | 0x80  # NOARP, PERMANENT
_NTF_PROXY = 0x08  # answered for, not a neighbour
_NLM_F_REPLACE = 0x100
_NEW_NEXTHOP, _DEL_NEXTHOP = 104, 105  # RTM_*, which pyroute2 leaves undecoded
_AF_INET, _AF_INET6 = 2, 10
_EVERYTHING = {_AF_INET: "0.0.0.0", _AF_INET6: "::"}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """`mac` is None when it does not answer. `fixed`: set by hand, the kernel never asks for it."""

    link: int
    host: str
    mac: bytes | None
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class LinkGone:
    index: int


@dataclass(frozen=True, slots=True)
class NeighbourGone:
    link: int
    host: str


@dataclass(frozen=True, slots=True)
class RouteGone:
    route: KernelRoute


@dataclass(frozen=True, slots=True)
class RouteSet:
    route: KernelRoute
    replaces: bool


@dataclass(frozen=True, slots=True)
class RoutesUncertain:
    """An address or a nexthop object went: IPv4 routes may have gone with it, unannounced."""


Fact = Link | LinkGone | Neighbour | NeighbourGone | RouteSet | RouteGone | RoutesUncertain


def fact(message: Any) -> Fact | None:
    """What an event says."""
    match message.get("event"):
        case "RTM_NEWLINK":
            return link(message)
        case "RTM_DELLINK":
            return LinkGone(message["index"])
        case "RTM_DELADDR":
            return RoutesUncertain()
        case "RTM_NEWNEIGH":
            return neighbour(message)
        case "RTM_DELNEIGH":
            return _neighbour_gone(message)
        case "RTM_NEWROUTE":
            found = route(message)
            return RouteSet(found, _replaces(message)) if found else None
        case "RTM_DELROUTE":
            found = route(message)
            return RouteGone(found) if found else None
    kind = message["header"]["type"]
    if kind == _DEL_NEXTHOP or (kind == _NEW_NEXTHOP and _replaces(message)):
        return RoutesUncertain()
    return None


def _replaces(message: Any) -> bool:
    return bool(message["header"]["flags"] & _NLM_F_REPLACE)


def link(message: Any) -> Link:
    flags = message["flags"]
    return Link(
        index=message["index"],
        name=message.get_attr("IFLA_IFNAME") or "",
        mac=_mac(message.get_attr("IFLA_ADDRESS")),
        up=bool(flags & _IFF_UP and flags & _IFF_LOWER_UP),
        mtu=message.get_attr("IFLA_MTU") or 1500,
        vlan=_vlan(message),
    )


def _vlan(message: Any) -> Vlan | None:
    about = message.get_attr("IFLA_LINKINFO")
    if not about or about.get_attr("IFLA_INFO_KIND") != "vlan":
        return None
    is_here = message.get_attr("IFLA_LINK_NETNSID") is None
    lower = message.get_attr("IFLA_LINK") if is_here else None
    data = about.get_attr("IFLA_INFO_DATA")
    return Vlan(
        lower=lower or ELSEWHERE,
        id=data.get_attr("IFLA_VLAN_ID"),
        protocol=data.get_attr("IFLA_VLAN_PROTOCOL") or CUSTOMER_TAG,
    )


def address(message: Any) -> str:
    """An address of this host."""
    found: str = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
    return found


def neighbour(message: Any) -> Neighbour | None:
    if not _is_host(message) or message["flags"] & _NTF_PROXY:
        return None
    mac, state = _mac(message.get_attr("NDA_LLADDR")), message["state"]
    at = message["ifindex"], message.get_attr("NDA_DST")
    if state & _NUD_FAILED:
        return Neighbour(*at, None)
    if mac and state & _NUD_KNOWN:
        return Neighbour(*at, mac, fixed=bool(state & _NUD_FIXED))
    return None


def _neighbour_gone(message: Any) -> NeighbourGone | None:
    if not _is_host(message) or message["flags"] & _NTF_PROXY:
        return None
    return NeighbourGone(message["ifindex"], message.get_attr("NDA_DST"))


def _is_host(message: Any) -> bool:
    """Bridges announce neighbours of another family; multicast groups are kept among IPv6 ones."""
    host = message.get_attr("NDA_DST")
    return message["family"] in _EVERYTHING and bool(host) and not host.startswith("ff")


def route(message: Any) -> KernelRoute | None:
    """A route of a main table that may carry our packets, or hide one that would."""
    family, kind = message["family"], message["type"]
    table = message.get_attr("RTA_TABLE") or message["table"]
    if family not in _EVERYTHING or table != _MAIN_TABLE:
        return None
    if kind not in (_UNICAST, *_UNREACHABLE) or message["flags"] & _CLONED:
        return None
    destination = message.get_attr("RTA_DST") or _EVERYTHING[family]
    network = ip_network(f"{destination}/{message['dst_len']}")
    if network.is_link_local and network.version == 6:
        return None  # the same on every link; as gateways such hosts come with their link
    metrics = message.get_attr("RTA_METRICS")
    return KernelRoute(
        network=network,
        hops=tuple(_hops(message)) if kind == _UNICAST else (),
        metric=message.get_attr("RTA_PRIORITY") or 0,
        tos=message["tos"],
        mtu=(metrics.get_attr("RTAX_MTU") or 0) if metrics else 0,
    )


def _hops(message: Any) -> Iterator[KernelHop]:
    several = message.get_attr("RTA_MULTIPATH")
    if several:
        for hop in several:
            yield _hop(hop["oif"], hop, hop["flags"])
    else:
        yield _hop(message.get_attr("RTA_OIF") or 0, message, message["flags"])


def _hop(link: int, attributes: Any, flags: int) -> KernelHop:
    """`RTA_VIA`: an IPv4 network behind an IPv6 gateway, RFC 5549."""
    gateway = attributes.get_attr("RTA_GATEWAY")
    if via := attributes.get_attr("RTA_VIA"):
        gateway = via["addr"]
    return KernelHop(link, gateway, dead=bool(flags & (_RTNH_DEAD | _RTNH_LINKDOWN)))


def _mac(text: str | None) -> bytes:
    return bytes.fromhex(text.replace(":", "")) if text else b""
