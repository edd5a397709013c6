"""What a hit costs, by test runs of the product's own text: nothing but the program itself.

hit        one forwarded packet, over the floor of a test run, the undoing of it taken away
lookup     finding and counting the flow alone, in the same map
"""

import struct
from dataclasses import dataclass

from relayctl.datapath.compile import SOURCE
from tests.bench import bpf
from tests.bench.rig import GENERATOR_CPU, Rig, on_cpu
from tests.bench.subjects.ferryline import Ferryline
from tests.bench.wire import FIRST_CLIENT, Frame, finished

FLOOR, PICK, LOOKUP, UNDO, TWICE, JUDGE = 0, 1, 2, 4, 8, 16  # as in hit_cost.c
REPEAT = 300_000

_PLACE = struct.Struct("=48sIIIIII")
_ONLY = bytes(4)
_KINDS = {
    "floor": FLOOR,
    "pick": PICK,
    "lookup": PICK | LOOKUP,
    "undo": PICK | UNDO,
    "undo_twice": PICK | UNDO | TWICE,
    "hit": PICK | JUDGE,
}


class Misjudged(RuntimeError):
    """Runs did not take the path that was to be measured."""


@dataclass(frozen=True, slots=True)
class HitCost:
    """Nanoseconds of one run of each kind, with so many flows touched out of order."""

    flows: int
    floor: float
    pick: float
    lookup: float
    undo: float
    undo_twice: float
    hit: float

    @property
    def push(self) -> float:
        """One adjustment of the head, which `undo` has too and the relay needs."""
        return self.undo_twice - self.undo

    @property
    def hit_over_floor(self) -> float:
        """The undoing taken away, but for the push that belongs to a hit."""
        return self.hit - self.undo + self.push

    @property
    def bracket(self) -> tuple[float, float]:
        """Push and undoing taken away whole, and not at all."""
        return self.hit - self.undo, self.hit - self.floor

    @property
    def lookup_over_floor(self) -> float:
        return self.lookup - self.pick


class HitBench:
    """The product's text with ours behind it, compiled once. A context manager."""

    def __init__(self, rig: Rig, relay: Ferryline, frame: Frame) -> None:
        """`relay` is started; its maps and flows are used."""
        text = (SOURCE / "relay.c").read_text() + bpf.source("hit_cost.c")
        self._compiled = bpf.Compiled(text, "hit_cost", relay.spec.defines())
        self._node, self._ifindex = rig.relay, rig.ifindex("outer0")
        self._packet = finished(frame, 0, 4)

    def measure(self, flows: int, rounds: int) -> HitCost:
        """The relay carries so many, and is on its interfaces. The least of the rounds counts:
        everything else only adds. Raises `Misjudged`."""
        least = dict.fromkeys(_KINDS, float("inf"))
        for _ in range(rounds):  # in turn: a slow moment hits all
            for name, parts in _KINDS.items():
                least[name] = min(least[name], self._run(parts, flows))
        return HitCost(flows, **least)

    def _run(self, parts: int, flows: int) -> float:
        places = self._compiled.map("places")
        places.update(_ONLY, _PLACE.pack(self._packet[:48], flows, 0, FIRST_CLIENT, 0, parts, 0))
        duration = self._node.call(self._timed)
        misjudged = _PLACE.unpack(places.lookup(_ONLY) or b"")[4]
        if misjudged:
            raise Misjudged(f"{misjudged} of {REPEAT} runs were no hits")
        return duration

    def _timed(self) -> float:
        with on_cpu(GENERATOR_CPU):
            run = self._compiled.program.test_run(
                self._packet, ifindex=self._ifindex, repeat=REPEAT
            )
        return run.duration

    def close(self) -> None:
        self._compiled.close()
