"""The XDP program does what the Python model says: verdict, bytes, reason, flow and counters.

Here every framing once, and a seeded quarter of a minute of chance; `make fuzz` plays a million
frames.
"""

import dataclasses
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest

from relayctl.reason import Reason
from tests.fuzz.worker import Arena
from tests.oracle import matrix
from tests.oracle.compare import PROGRAM_REASONS, Disagreement, Duel
from tests.oracle.generator import Generator
from tests.oracle.node import NODES
from tests.oracle.scene import Scene, read, to_line

NODE_NAMES = ("spp", "peers", "transparent")  # the others differ from the first in a constant
SCENES = 250
REGRESSIONS = read(Path("tests/vectors/oracle_regressions.txt").read_text())


@pytest.fixture(scope="module")
def arena(bpffs: Path, namespace: None) -> Iterator[Arena]:
    """The nodes' programs, on one CPU since that is where they count."""
    home = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(home)})
    with ExitStack() as cleaning:
        yield Arena(bpffs, cleaning)
    os.sched_setaffinity(0, home)


def agrees(arena: Arena, scene: Scene) -> None:
    found = arena.play(scene)
    if found:
        smallest = arena.smallest(found)
        pytest.fail(f"{smallest}\n{to_line(smallest.scene)}")


@pytest.mark.parametrize("name", NODE_NAMES)
def test_every_framing(arena: Arena, name: str) -> None:
    for scene in matrix.scenes(NODES[name]):
        agrees(arena, scene)


@pytest.mark.parametrize("name", NODE_NAMES)
def test_scenes_by_chance(arena: Arena, name: str) -> None:
    generator = Generator(NODES[name], random.Random(2026))
    for scene in islice(generator.scenes(), SCENES):
        agrees(arena, scene)


def test_chance_reaches_every_reason(arena: Arena) -> None:
    """Runs after the scenes above: what they compared is what is asked for."""
    reached = {reason for name in NODE_NAMES for reason in arena.duel(name).reached}
    assert reached == set(PROGRAM_REASONS)


@pytest.mark.parametrize("scene", REGRESSIONS, ids=lambda scene: scene.note)
def test_regression(arena: Arena, scene: Scene) -> None:
    agrees(arena, scene)


def first_difference(duel: Duel, scenes: Iterator[Scene]) -> Disagreement:
    return next(found for scene in islice(scenes, 50) if (found := duel.play(scene)))


def test_a_model_of_another_node_disagrees(arena: Arena) -> None:
    """The comparison would see it: one address more in the configuration is enough."""
    node = NODES["spp"]
    other = dataclasses.replace(node, own=(*node.own, "198.51.100.77"))
    duel = Duel(other, arena.duel("spp").program)
    found = first_difference(duel, Generator(node, random.Random(1)).scenes())
    assert found.model.startswith(Reason.DROP_BAD_SOURCE.name)
