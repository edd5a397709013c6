from tests.bench.hit_cost import HitCost


def test_what_a_hit_costs_lies_in_its_bracket() -> None:
    cost = HitCost(1, floor=28, pick=31, lookup=61, undo=49, undo_twice=57, hit=140)
    assert cost.push == 8
    assert cost.hit_over_floor == 140 - 49 + 8
    assert cost.bracket == (91, 112)
    assert cost.bracket[0] < cost.hit_over_floor < cost.bracket[1]
    assert cost.lookup_over_floor == 30
