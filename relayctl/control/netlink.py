"""Reads links, routes and neighbours from the kernel, as a dump and as events.

The only place that knows netlink messages. Events come from a plain socket that the event loop
watches; dumps and requests go through pyroute2's asynchronous socket.
"""

import errno
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from pyroute2 import AsyncIPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl.marshal import MarshalRtnl

from relayctl.control.network import KernelHop, KernelRoute, Link

_GROUPS = 0x1 | 0x4 | 0x10 | 0x40  # RTMGRP_LINK, _NEIGH, _IPV4_IFADDR, _IPV4_ROUTE
_EVENT_BUFFER = 4 << 20
_MAIN_TABLE = 254
_UNICAST = 1  # RTN_UNICAST
_UNREACHABLE = (6, 7, 8)  # RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT
_CLONED = 0x200  # RTM_F_CLONED
_IFF_UP, _IFF_LOWER_UP = 0x1, 0x10000
_RTNH_DEAD, _RTNH_LINKDOWN = 0x1, 0x10
_NUD_KNOWN = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80  # reachable to permanent
_NUD_FAILED = 0x20
_NLM_F_REPLACE = 0x100
_NTF_USE = 0x01
_NTF_EXT_MANAGED = 0x01  # kernel 5.16


@dataclass(frozen=True, slots=True)
class Neighbour:
    """`mac` is None when it does not answer."""

    link: int
    host: str
    mac: bytes | None


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
class AddressGone:
    """Routes may have gone with it, unannounced."""


Fact = Link | LinkGone | Neighbour | NeighbourGone | RouteSet | RouteGone | AddressGone


class EventsLost(Exception):
    """The kernel had more news than the socket holds: read everything again."""


class Events:
    """The kernel's announcements."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _EVENT_BUFFER)
        self._socket.bind((0, _GROUPS))
        self._marshal = MarshalRtnl()

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> Iterator[Fact]:
        """What waits. Raises `EventsLost`."""
        while True:
            try:
                data = self._socket.recv(65536)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    raise EventsLost from None
                raise
            for message in self._marshal.parse(data):
                fact = _fact(message)
                if fact is not None:
                    yield fact

    def close(self) -> None:
        self._socket.close()


class Kernel:
    """Dumps and requests."""

    def __init__(self) -> None:
        self._route = AsyncIPRoute()

    async def links(self) -> AsyncIterator[Link]:
        async for message in await self._route.link("dump"):
            yield _link(message)

    async def routes(self) -> AsyncIterator[KernelRoute]:
        dump = await self._route.route("dump", family=socket.AF_INET, table=_MAIN_TABLE)
        async for message in dump:
            route = _route(message)
            if route is not None:
                yield route

    async def neighbours(self) -> AsyncIterator[Neighbour]:
        async for message in await self._route.neigh("dump", family=socket.AF_INET):
            neighbour = _neighbour(message)
            if neighbour is not None:
                yield neighbour

    async def addresses(self) -> list[str]:
        dump = await self._route.addr("dump", family=socket.AF_INET)
        return [message.get_attr("IFA_LOCAL") async for message in dump]

    async def keep_resolved(self, link: int, host: str) -> bool:
        """Let the kernel resolve a neighbour and check it by itself. False if it refuses."""
        return await self._neighbour(link, host, flags_ext=_NTF_EXT_MANAGED)

    async def poke(self, link: int, host: str) -> bool:
        """Let the kernel check a neighbour once, as if a packet went there."""
        return await self._neighbour(link, host, flags=_NTF_USE)

    async def _neighbour(self, link: int, host: str, **flags: int) -> bool:
        try:
            await self._route.neigh("replace", dst=host, ifindex=link, state=0, **flags)
        except (NetlinkError, OSError):
            return False
        return True

    def close(self) -> None:
        self._route.close()


def _fact(message: Any) -> Fact | None:
    match message["event"]:
        case "RTM_NEWLINK":
            return _link(message)
        case "RTM_DELLINK":
            return LinkGone(message["index"])
        case "RTM_DELADDR":
            return AddressGone()
        case "RTM_NEWNEIGH":
            return _neighbour(message)
        case "RTM_DELNEIGH":
            return _neighbour_gone(message)
        case "RTM_NEWROUTE":
            route = _route(message)
            replaces = bool(message["header"]["flags"] & _NLM_F_REPLACE)
            return RouteSet(route, replaces) if route else None
        case "RTM_DELROUTE":
            route = _route(message)
            return RouteGone(route) if route else None
    return None


def _link(message: Any) -> Link:
    flags = message["flags"]
    return Link(
        index=message["index"],
        name=message.get_attr("IFLA_IFNAME") or "",
        mac=_mac(message.get_attr("IFLA_ADDRESS")),
        up=bool(flags & _IFF_UP and flags & _IFF_LOWER_UP),
        mtu=message.get_attr("IFLA_MTU") or 1500,
    )


def _neighbour(message: Any) -> Neighbour | None:
    if message["family"] != socket.AF_INET:
        return None
    mac, state = _mac(message.get_attr("NDA_LLADDR")), message["state"]
    host = message.get_attr("NDA_DST")
    if state & _NUD_FAILED:
        return Neighbour(message["ifindex"], host, None)
    if mac and state & _NUD_KNOWN:
        return Neighbour(message["ifindex"], host, mac)
    return None


def _neighbour_gone(message: Any) -> NeighbourGone | None:
    if message["family"] != socket.AF_INET:
        return None
    return NeighbourGone(message["ifindex"], message.get_attr("NDA_DST"))


def _route(message: Any) -> KernelRoute | None:
    table = message.get_attr("RTA_TABLE") or message["table"]
    if message["family"] != socket.AF_INET or table != _MAIN_TABLE:
        return None
    kind = message["type"]
    if kind not in (_UNICAST, *_UNREACHABLE) or message["flags"] & _CLONED:
        return None
    destination = message.get_attr("RTA_DST") or "0.0.0.0"
    metrics = message.get_attr("RTA_METRICS")
    return KernelRoute(
        network=IPv4Network(f"{destination}/{message['dst_len']}"),
        hops=tuple(_hops(message)) if kind == _UNICAST else (),
        metric=message.get_attr("RTA_PRIORITY") or 0,
        tos=message["tos"],
        mtu=(metrics.get_attr("RTAX_MTU") or 0) if metrics else 0,
    )


def _hops(message: Any) -> Iterator[KernelHop]:
    several = message.get_attr("RTA_MULTIPATH")
    if several:
        for hop in several:
            yield _hop(hop["oif"], hop.get_attr("RTA_GATEWAY"), hop["flags"])
    else:
        yield _hop(message.get_attr("RTA_OIF"), message.get_attr("RTA_GATEWAY"), message["flags"])


def _hop(link: int, gateway: str | None, flags: int) -> KernelHop:
    return KernelHop(link, gateway, dead=bool(flags & (_RTNH_DEAD | _RTNH_LINKDOWN)))


def _mac(text: str | None) -> bytes:
    return bytes.fromhex(text.replace(":", "")) if text else b""
