"""Away, back, dead: when, and in which order."""

import math

from transceiver.ice.event import Away, Back, Dead, Event
from transceiver.ice.liveness import Liveness


def begun(away_after_s: float = 10.0, consent_s: float = 30.0) -> tuple[Liveness, list[Event]]:
    events: list[Event] = []
    liveness = Liveness(away_after_s, consent_s, events)
    liveness.begin(100.0)
    return liveness, events


def test_nothing_counts_before_the_beginning() -> None:
    events: list[Event] = []
    liveness = Liveness(10.0, 30.0, events)
    liveness.hear(5.0)
    liveness.watch(1e9)
    assert not liveness.begun
    assert liveness.deadline() == math.inf
    assert events == []


def test_the_second_beginning_is_none() -> None:
    liveness, _ = begun()
    liveness.begin(200.0)
    assert liveness.heard == 100.0


def test_away_is_said_once_and_dead_follows() -> None:
    liveness, events = begun()
    assert liveness.deadline() == 110.0
    liveness.watch(109.999)
    assert events == []
    liveness.watch(110.0)
    liveness.watch(111.0)
    assert events == [Away()]
    assert liveness.deadline() == 130.0
    liveness.watch(130.0)
    assert events == [Away(), Dead()]
    assert liveness.ended
    assert liveness.deadline() == math.inf


def test_hearing_brings_back_and_starts_anew() -> None:
    liveness, events = begun()
    liveness.watch(110.0)
    liveness.hear(115.0)
    liveness.hear(116.0)
    assert events == [Away(), Back()]
    assert liveness.deadline() == 126.0


def test_a_consent_shorter_than_away_ends_at_once() -> None:
    liveness, events = begun(away_after_s=10.0, consent_s=5.0)
    assert liveness.deadline() == 105.0
    liveness.watch(105.0)
    assert events == [Dead()]
