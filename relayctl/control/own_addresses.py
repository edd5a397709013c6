"""Tells the packet process which addresses this host has, at the start and when they change: no
client can have one of them.

The program knows those that the host had when it was compiled.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from relayctl.control.netlink import Events, EventsLost, Kernel
from relayctl.messages import Message, OwnAddresses

MOST = 2048  # addresses that are told: so many fit a message
AGAIN_S = 1.0  # after which a full pipe is tried again


class AddressTeller:
    def __init__(self, events: Events, kernel: Kernel, send: Callable[[Message], bool]) -> None:
        """`events`: of addresses."""
        self._events = events
        self._kernel = kernel
        self._send = send
        self._told: list[str] = []
        self._woken = asyncio.Event()

    def forget(self) -> None:
        """There is a new packet process, which knows nothing yet."""
        self._told = []
        self._woken.set()

    async def run(self) -> None:
        """Tell until cancelled."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._events.fileno(), self._woken.set)
        try:
            while True:
                self._woken.clear()
                is_told = await self._tell()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), None if is_told else AGAIN_S)
        finally:
            loop.remove_reader(self._events.fileno())

    async def _tell(self) -> bool:
        """False when the pipe is full."""
        with suppress(EventsLost):
            list(self._events.read())  # that there is news is all there is to know
        hosts = sorted(set(await self._kernel.addresses()))[:MOST]
        if hosts != self._told and not self._send(OwnAddresses(tuple(hosts))):
            return False
        self._told = hosts
        return True
