from itertools import pairwise

from tests.chaos.engine import ordered
from tests.chaos.scenario import Fault, Needs, Scenario

ALONE, TWO = Needs(), Needs(relays=2)


def scenario(name: str, needs: Needs, spoils: bool = False) -> Scenario:
    return Scenario(name, (), lambda stage: Fault(), needs, spoils=spoils)


GIVEN = [
    *(scenario(f"alone{n}", ALONE, spoils=n == 1) for n in range(4)),
    *(scenario(f"two{n}", TWO) for n in range(4)),
]


def test_order_follows_from_the_seed() -> None:
    orders = [[each.name for each in ordered(GIVEN, seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(each.name for each in GIVEN)


def test_a_stage_is_made_once_and_spoilt_last() -> None:
    for seed in range(10):
        found = ordered(GIVEN, seed)
        changes = sum(a.needs != b.needs for a, b in pairwise(found))
        assert changes == 1
        alone = [each for each in found if each.needs == ALONE]
        assert [each.spoils for each in alone] == [False, False, False, True]
