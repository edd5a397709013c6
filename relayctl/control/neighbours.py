"""Asks the kernel to find the neighbours in use, and to see whether they are still there.

The program's packets do not pass the kernel's neighbour table: without being asked it would neither
resolve nor check anybody. Neighbours that somebody set by hand are left alone.
"""

from collections.abc import Iterable

from relayctl.control.facts import Neighbour
from relayctl.control.netlink import Kernel

MAX_PROBES = 256  # neighbours probed at once; where there are more they take turns

Place = tuple[int, str]
"""Index of the link and address of the neighbour on it."""


class Neighbours:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._fixed: set[Place] = set()  # nobody's to ask
        self._wanted: set[Place] = set()
        self._turns: list[Place] = []

    @property
    def are_wanted(self) -> bool:
        return bool(self._wanted)

    def heard(self, neighbour: Neighbour) -> None:
        (self._fixed.add if neighbour.fixed else self._fixed.discard)(
            (neighbour.link, neighbour.host)
        )

    def forgotten(self, link: int, host: str) -> None:
        self._fixed.discard((link, host))

    def want(self, places: Iterable[Place]) -> None:
        """Have them resolved at the next `ask`."""
        self._wanted.update(places)

    async def ask(self) -> None:
        while self._wanted:
            place = self._wanted.pop()
            if place not in self._fixed:
                await self._kernel.keep_resolved(*place)

    async def probe(self, in_use: Iterable[Place]) -> None:
        """Ask those in use whether they are there, as many as one turn allows."""
        if not self._turns:
            self._turns = [place for place in dict.fromkeys(in_use) if place not in self._fixed]
        turn, self._turns = self._turns[:MAX_PROBES], self._turns[MAX_PROBES:]
        for place in turn:
            await self.ask()  # somebody's first packet waits for these
            await self._kernel.probe(*place)
