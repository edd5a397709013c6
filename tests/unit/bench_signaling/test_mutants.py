"""The generator of bad offers: the same for the same seed, and of every kind."""

from collections import Counter

from tests.bench_signaling.mutants import CHANGES, VECTORS, mutants


def test_a_seed_is_a_promise() -> None:
    assert list(mutants(300, 1)) == list(mutants(300, 1))
    assert list(mutants(300, 1)) != list(mutants(300, 2))
    assert [mutant.offer for mutant in mutants(50, 1)] == [
        mutant.offer for mutant in mutants(300, 1)
    ][:50]


def test_every_change_and_every_offer_comes() -> None:
    words = Counter(word for mutant in mutants(500, 1) for word in mutant.name.split())
    assert {change.__name__ for change in CHANGES} <= set(words)
    assert {vector.stem for vector in VECTORS} <= set(words)
    assert len({mutant.offer for mutant in mutants(500, 1)}) > 400
