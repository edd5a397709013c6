"""Reads links, routes and neighbours from the kernel, as a dump and as events.

Events come from a plain socket that the event loop watches; dumps and requests go through
pyroute2's asynchronous socket. What the messages mean stands in `facts`.
"""

import errno
import platform
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

from pyroute2 import AsyncIPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl.marshal import MarshalRtnl

from relayctl.control import facts
from relayctl.control.facts import Fact, Neighbour
from relayctl.control.link import Carrier, Link, carriers
from relayctl.control.network import KernelRoute

MANAGED_SINCE = (5, 16)  # kernel that keeps neighbours resolved by itself

ADDRESS_GROUPS = 0x10 | 0x100  # RTMGRP_IPV4_IFADDR, _IPV6_IFADDR
_GROUPS = (
    ADDRESS_GROUPS
    | 0x1 | 0x4  # RTMGRP_LINK, _NEIGH
    | 0x40 | 0x400  # RTMGRP_IPV4_ROUTE, _IPV6_ROUTE
    | 1 << 31  # RTNLGRP_NEXTHOP, kernel 5.3
)  # fmt: skip
_EVENT_BUFFER = 4 << 20
_MAIN_TABLE = 254
_FAMILIES = socket.AF_INET, socket.AF_INET6
_NUD_PROBE = 0x10
_NTF_USE = 0x01
_NTF_EXT_MANAGED = 0x01


class EventsLost(Exception):
    """The kernel had more news than the socket holds: read everything again."""


class Events:
    """The kernel's announcements."""

    def __init__(self, groups: int = _GROUPS) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _EVENT_BUFFER)
        self._socket.bind((0, groups))
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
                fact = facts.fact(message)
                if fact is not None:
                    yield fact

    def close(self) -> None:
        self._socket.close()


class Kernel:
    """Dumps and requests."""

    def __init__(self) -> None:
        self._route = AsyncIPRoute()
        self._keep: Mapping[str, int] = (
            {"flags_ext": _NTF_EXT_MANAGED} if _is_managed() else {"flags": _NTF_USE}
        )

    async def links(self) -> AsyncIterator[Link]:
        async for message in await self._route.link("dump"):
            yield facts.link(message)

    async def carriers(self, names: Iterable[str]) -> Mapping[str, Carrier]:
        """Which device carries the frames of each interface, and under which VLAN tags.

        Raises `DatapathError` for an interface that is not there or that the program cannot serve.
        """
        return carriers(names, [link async for link in self.links()])

    async def routes(self) -> AsyncIterator[KernelRoute]:
        for family in _FAMILIES:
            async for message in await self._route.route("dump", family=family, table=_MAIN_TABLE):
                route = facts.route(message)
                if route is not None:
                    yield route

    async def neighbours(self) -> AsyncIterator[Neighbour]:
        for family in _FAMILIES:
            async for message in await self._route.neigh("dump", family=family):
                neighbour = facts.neighbour(message)
                if neighbour is not None:
                    yield neighbour

    async def addresses(self) -> list[str]:
        """This host's own addresses, of both families, link-local ones too."""
        return [
            facts.address(message)
            for family in _FAMILIES
            async for message in await self._route.addr("dump", family=family)
        ]

    async def keep_resolved(self, link: int, host: str) -> bool:
        """Let the kernel resolve a neighbour, and check it by itself if it can. False if it
        refuses."""
        return await self._neighbour(link, host, state=0, **self._keep)

    async def probe(self, link: int, host: str) -> bool:
        """Let the kernel ask a neighbour now whether it is still there, though it sends nothing.

        A silent change of its MAC address shows after three unanswered questions, in 3 s. The
        kernel's own checks of a `managed` neighbour take up to a minute.
        """
        asked = await self._neighbour(link, host, state=_NUD_PROBE)  # refused without a MAC
        return await self.keep_resolved(link, host) and asked  # the question cleared the flag

    async def _neighbour(self, link: int, host: str, **how: Any) -> bool:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            await self._route.neigh("replace", dst=host, ifindex=link, family=family, **how)
        except (NetlinkError, OSError):
            return False
        return True

    def close(self) -> None:
        self._route.close()


def _is_managed() -> bool:
    major, minor = platform.release().split(".")[:2]
    return (int(major), int(minor)) >= MANAGED_SINCE
