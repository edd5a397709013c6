import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from relayctl.channel import MAX_MESSAGE
from relayctl.control import own_addresses
from relayctl.control.facts import RoutesUncertain
from relayctl.control.netlink import Events, EventsLost, Kernel
from relayctl.control.own_addresses import MOST, AddressTeller
from relayctl.messages import Message, OwnAddresses, encode


class World:
    """The kernel's side and the pipe."""

    def __init__(self) -> None:
        self.hosts = ["127.0.0.1", "10.3.0.1"]
        self.sent: list[Message] = []
        self.refusals = 0
        self.is_lost = False
        self._arrived = asyncio.Event()
        self._ours, self._kernels = socket.socketpair()
        self._ours.setblocking(False)
        self.teller = AddressTeller(cast(Events, self), cast(Kernel, self), self.send)

    def change(self, *hosts: str, is_lost: bool = False) -> None:
        self.hosts, self.is_lost = list(hosts), is_lost
        self._kernels.send(b"!")

    def fileno(self) -> int:
        return self._ours.fileno()

    def read(self) -> list[RoutesUncertain]:
        try:
            self._ours.recv(100)
        except BlockingIOError:
            return []
        if self.is_lost:
            raise EventsLost
        return [RoutesUncertain()]

    async def addresses(self) -> list[str]:
        return self.hosts

    def send(self, message: Message) -> bool:
        if self.refusals:
            self.refusals -= 1
            return False
        self.sent.append(message)
        self._arrived.set()
        return True

    async def until(self, count: int) -> None:
        """So many messages were sent."""
        while len(self.sent) < count:
            self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        self._ours.close()
        self._kernels.close()


def play(scene: Callable[[World], Awaitable[None]]) -> list[Message]:
    """The messages of a scene."""

    async def run() -> list[Message]:
        world = World()
        task = asyncio.create_task(world.teller.run())
        try:
            async with asyncio.timeout(20):
                await world.until(1)
                await scene(world)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            world.close()
        return world.sent

    return asyncio.run(run())


FIRST = OwnAddresses(("10.3.0.1", "127.0.0.1"))


def test_they_are_told_at_the_start_and_when_they_change() -> None:
    async def scene(world: World) -> None:
        world.change("127.0.0.1", "10.3.0.1", "127.0.0.1")  # in another order: no news
        world.change("127.0.0.1")
        await world.until(2)
        world.change("::1", is_lost=True)
        await world.until(3)

    assert play(scene) == [FIRST, OwnAddresses(("127.0.0.1",)), OwnAddresses(("::1",))]


def test_a_new_packet_process_hears_them() -> None:
    async def scene(world: World) -> None:
        world.teller.forget()
        await world.until(2)

    assert play(scene) == [FIRST, FIRST]


def test_a_full_pipe_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_addresses, "AGAIN_S", 0.001)

    async def scene(world: World) -> None:
        world.refusals = 3
        world.change("::1")
        await world.until(2)

    assert play(scene) == [FIRST, OwnAddresses(("::1",))]


def test_all_that_are_told_fit_a_message() -> None:
    longest = "fe80:1111:2222:3333:4444:5555:6666:7777"

    async def scene(world: World) -> None:
        world.change(*(f"{longest[:-4]}{number:04x}" for number in range(MOST + 9)))
        await world.until(2)

    _, told = play(scene)
    assert isinstance(told, OwnAddresses)
    assert len(told.hosts) == MOST
    assert len(encode(told)) <= MAX_MESSAGE
