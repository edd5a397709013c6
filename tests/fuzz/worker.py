"""One process of `make fuzz`: all nodes on one CPU, scenes by chance until it has its share."""

import os
import queue
import random
import signal
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from pathlib import Path

from relayctl.reason import Reason
from tests.oracle.compare import Disagreement, Duel
from tests.oracle.generator import Generator
from tests.oracle.kernel import Kernel, place
from tests.oracle.node import NODES
from tests.oracle.scene import Scene
from tests.oracle.shrink import shrunk

TURN = 40  # scenes of one node before it is the next one's turn
KINDS = 20  # of disagreement; a worker that found so many has found enough


@dataclass
class Progress:
    """What a worker reports after each turn."""

    reached: Counter[Reason] = field(default_factory=Counter)
    found: list[tuple[Scene, str]] = field(default_factory=list)
    """Disagreements of a kind not seen before: the smallest scene, and how the two differ."""
    disagreements: int = 0  # frames
    error: str = ""
    is_last: bool = False

    @property
    def frames(self) -> int:
        return sum(self.reached.values()) + self.disagreements


class Arena:
    """A duel for each node, all on this process's CPU."""

    def __init__(self, bpffs: Path, cleaning: ExitStack) -> None:
        self._duels: dict[str, Duel] = {}
        self._bpffs = bpffs
        self._cleaning = cleaning

    def duel(self, name: str) -> Duel:
        """Compiles the node when it is first asked for."""
        if name not in self._duels:
            program = Kernel(NODES[name], self._bpffs)
            self._cleaning.callback(program.close)
            self._duels[name] = Duel(NODES[name], program)
        return self._duels[name]

    def play(self, scene: Scene) -> Disagreement | None:
        return self.duel(scene.node).play(scene)

    def smallest(self, disagreement: Disagreement) -> Disagreement:
        """The same disagreement in the smallest scene."""

        def shows(scene: Scene) -> bool:
            found = self.play(scene)
            return found is not None and found.kind == disagreement.kind

        return self.play(shrunk(disagreement.scene, shows)) or disagreement


def work(cpu: int, frames: int, seed: int, results: "Queue[Progress]") -> None:
    """Compare `frames` frames on `cpu`; every turn's `Progress` goes to `results`."""
    os.sched_setaffinity(0, {cpu})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and clean up
    try:
        with place() as bpffs, ExitStack() as cleaning:
            _compare(Arena(bpffs, cleaning), frames, seed, results)
    except Exception as error:  # whatever it is, the parent has to hear of it
        results.put(Progress(error=f"{type(error).__name__}: {error}", is_last=True))
    else:
        results.put(Progress(is_last=True))


def _compare(arena: Arena, frames: int, seed: int, results: "Queue[Progress]") -> None:
    generators = {
        name: Generator(relay, random.Random(f"{seed} {name}")) for name, relay in NODES.items()
    }
    kinds: set[tuple[str, str]] = set()
    done = 0
    while done < frames and len(kinds) < KINDS:
        for name, generator in generators.items():
            progress = _turn(arena, name, generator, kinds)
            done += progress.frames
            results.put(progress)


def _turn(arena: Arena, name: str, generator: Generator, kinds: set[tuple[str, str]]) -> Progress:
    progress = Progress()
    duel = arena.duel(name)
    duel.reached.clear()
    found = []
    for _ in range(TURN):
        if disagreement := duel.play(generator.scene()):
            progress.disagreements += 1
            if disagreement.kind not in kinds:
                kinds.add(disagreement.kind)
                found.append(disagreement)
    progress.reached = Counter(duel.reached)
    for each in found:
        smallest = arena.smallest(each)
        progress.found.append((smallest.scene, str(smallest)))
    return progress


def drain(results: "Queue[Progress]", timeout: float) -> Progress | None:
    """The next report, or None after `timeout` seconds without one."""
    try:
        return results.get(timeout=timeout)
    except queue.Empty:
        return None
