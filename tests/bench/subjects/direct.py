"""No relay at all: the counter is where the relay would be. What is left is generator, one veth and
counter, to be taken off what the others cost."""

from collections.abc import Sequence
from dataclasses import replace

from tests.bench.subjects import legs
from tests.bench.subjects.base import Leg

_ACROSS = {"gen0": "outer0", "sink0": "inner0"}


class Direct:
    name = "no relay"

    def __init__(self, ways: Sequence[Leg]) -> None:
        self.legs = tuple(replace(legs.untouched(leg), leaves=_ACROSS[leg.enters]) for leg in ways)

    def pids(self) -> list[int]:
        return []

    def start(self) -> None: ...

    def carry(self, flows: int) -> None: ...

    def keep_alive(self, flows: int) -> None: ...

    def rest(self) -> None: ...

    def stop(self) -> None: ...
