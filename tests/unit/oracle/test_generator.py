"""The generator is asked for what the comparison needs: variety, and the same again."""

import random
from itertools import islice

import pytest

from tests.oracle import matrix
from tests.oracle.generator import Generator
from tests.oracle.node import NODES
from tests.oracle.scene import Scene


@pytest.mark.parametrize("name", NODES)
def test_same_seed_same_scenes(name: str) -> None:
    one, other = (Generator(NODES[name], random.Random(5)) for _ in range(2))
    assert list(islice(one.scenes(), 3)) == list(islice(other.scenes(), 3))


def test_matrix_has_every_length_on_every_leg() -> None:
    scenes: list[Scene] = list(matrix.scenes(NODES["spp"]))
    for carrier in ("outer", "inner"):
        lengths = {len(s.frame) for scene in scenes for s in scene.frames if s.carrier == carrier}
        assert lengths >= set(range(14, 1515))
