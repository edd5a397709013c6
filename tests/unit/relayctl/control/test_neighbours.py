import asyncio

import pytest

from relayctl.control import neighbours as module
from relayctl.control.facts import Neighbour
from relayctl.control.neighbours import Neighbours, Place
from relayctl.control.netlink import Kernel

MAC = bytes.fromhex("020000000001")
PLACES: list[Place] = [(2, f"10.2.0.{number}") for number in range(5)]


class FakeKernel(Kernel):
    def __init__(self) -> None:
        self.asked: list[Place] = []
        self.probed: list[Place] = []

    async def keep_resolved(self, link: int, host: str) -> bool:
        self.asked.append((link, host))
        return True

    async def probe(self, link: int, host: str) -> bool:
        self.probed.append((link, host))
        return True


def test_what_is_wanted_is_asked_for_once() -> None:
    kernel = FakeKernel()
    neighbours = Neighbours(kernel)
    neighbours.want([PLACES[0], PLACES[0]])
    assert neighbours.are_wanted
    for _ in range(2):
        asyncio.run(neighbours.ask())
    assert kernel.asked == [PLACES[0]]
    assert not neighbours.are_wanted


def test_probes_take_turns_and_new_ones_need_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROBES", 2)
    kernel = FakeKernel()
    neighbours = Neighbours(kernel)
    for _ in range(4):
        asyncio.run(neighbours.probe([*PLACES, *PLACES]))
    assert kernel.probed == [*PLACES, *PLACES[:2]]
    neighbours.want([PLACES[4]])
    asyncio.run(neighbours.probe(PLACES))
    assert kernel.asked == [PLACES[4]]


def test_what_was_set_by_hand_is_left_alone() -> None:
    kernel = FakeKernel()
    neighbours = Neighbours(kernel)
    neighbours.heard(Neighbour(*PLACES[0], MAC, fixed=True))
    neighbours.want(PLACES[:2])
    asyncio.run(neighbours.ask())
    asyncio.run(neighbours.probe(PLACES[:2]))
    assert (kernel.asked, kernel.probed) == ([PLACES[1]], [PLACES[1]])
    neighbours.forgotten(*PLACES[0])
    asyncio.run(neighbours.probe(PLACES[:1]))
    assert kernel.probed[-1] == PLACES[0]
