from collections import Counter

from relayctl.wire.route_token import Key
from tests.lab.hostile import LONGEST, Target, datagrams
from tests.lab.hostile_label import FATES, Label

TARGET = Target(
    key=Key(1, bytes(range(32))),
    cluster=7,
    endpoint=("10.2.0.2", 5000),
    forbidden=(("8.8.8.8", 5000),),
    vip=("203.0.113.10", 3478),
)
COUNT = len(Label) * 351


def test_the_same_seed_gives_the_same_datagrams() -> None:
    assert list(datagrams(1, 500, TARGET)) == list(datagrams(1, 500, TARGET))
    assert list(datagrams(1, 500, TARGET)) != list(datagrams(2, 500, TARGET))


def test_every_label_comes_equally_often() -> None:
    counts = Counter(each.label for each in datagrams(1, COUNT, TARGET))
    assert counts == dict.fromkeys(Label, 351)


def test_noise_has_every_length() -> None:
    noise = [each for each in datagrams(1, COUNT, TARGET) if each.label.startswith("noise_")]
    assert {len(each.payload) for each in noise} == set(range(1, LONGEST + 1))


def test_every_label_has_a_fate_or_any() -> None:
    assert FATES.keys() == set(Label) - {Label.BENT}
