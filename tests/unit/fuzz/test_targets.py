"""What coverage-guided fuzzing runs, run on well-formed and on broken input."""

import random

import pytest

from tests.fuzz.codecs import NAMES
from tests.fuzz.targets import TARGETS


def test_every_target_is_named() -> None:
    assert sorted(NAMES) == sorted(TARGETS)


@pytest.mark.parametrize("name", NAMES)
def test_target_holds_on_its_seeds_and_on_damaged_ones(name: str) -> None:
    source = random.Random(name)
    target = TARGETS[name]
    target.run(b"")
    for seed in target.seeds:
        target.run(seed)
        for _ in range(100):
            at = source.randrange(len(seed))
            target.run(seed[:at] + source.randbytes(1) + seed[at + 1 :])
            target.run(seed[:at])
