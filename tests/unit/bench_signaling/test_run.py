from collections import Counter

from tests.bench_signaling.effort import FULL
from tests.bench_signaling.run import SUITE, catalogue
from tests.figures.run import targets


def test_names_are_there_once_and_quick_has_the_same() -> None:
    measurements = catalogue(FULL)
    names = Counter(target.name for target in targets(measurements))
    assert names.total() == len(names) == 26
    assert [each.name for each in SUITE.catalogue(True)] == [each.name for each in measurements]
