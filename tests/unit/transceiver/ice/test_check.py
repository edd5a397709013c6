"""Rounds of checks: pace, limits, transactions."""

import math

import pytest

from tests.unit.transceiver.ice.wire import OURS, SECOND, counter
from transceiver.ice.check import MAX_UNPROVEN, Checks
from transceiver.ice.event import Asked, Event, PathKey, Settled
from transceiver.ice.path import Path, Paths


class Bench:
    def __init__(self) -> None:
        self.paths = Paths()
        self.datagrams: list[tuple[bytes, PathKey]] = []
        self.events: list[Event] = []
        self.checks = Checks(self.paths, self.datagrams, self.events, counter())

    def transaction_ids(self, path: Path) -> list[bytes]:
        return [datagram[8:20] for datagram, key in self.datagrams if key == path.key]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_connectivity_check_repeats_its_transaction_and_doubles_the_pause(bench: Bench) -> None:
    path = bench.paths.add("p")
    bench.checks.ask(path, OURS, 10.0)
    for due in (10.1, 10.3, 10.7):
        assert bench.checks.deadline() == pytest.approx(due)
        assert not bench.checks.advance(path, due - 0.01)
        assert not bench.checks.advance(path, bench.checks.deadline())
    assert len(set(bench.transaction_ids(path))) == 1
    assert len(bench.datagrams) == 3
    assert bench.checks.deadline() == 15.0  # then the transaction is given up
    bench.checks.advance(path, 15.0)
    assert bench.checks.deadline() == math.inf
    assert [type(event) for event in bench.events] == [Asked, Settled]


def test_consent_checks_are_new_transactions_and_the_third_silence_is_told(bench: Bench) -> None:
    path = bench.paths.add("p")
    bench.checks.ask_consent(path, OURS, 10.0)
    answers = [bench.checks.advance(path, 10.0 + half / 2) for half in range(1, 5)]
    assert answers == [False, False, True, False]
    assert len(set(bench.transaction_ids(path))) == 3


def test_a_round_is_not_started_twice_nor_soon_again(bench: Bench) -> None:
    path = bench.paths.add("p")
    for now in (10.0, 10.05, 10.11, 10.32, 10.75, 11.99):
        bench.checks.advance(path, now)
        bench.checks.ask(path, OURS, now)
    assert len(bench.datagrams) == 3
    bench.checks.ask(path, OURS, 12.0)
    assert len(bench.datagrams) == 4


def test_other_credentials_do_not_wait_for_the_round_of_the_old(bench: Bench) -> None:
    path = bench.paths.add("p")
    bench.checks.ask(path, OURS, 10.0)
    bench.checks.ask(path, SECOND, 10.0)
    assert len(bench.datagrams) == 2


def test_an_answer_settles_all_of_its_credentials_and_only_those(bench: Bench) -> None:
    path = bench.paths.add("p")
    bench.checks.ask_consent(path, OURS, 10.0)
    bench.checks.advance(path, 10.5)
    bench.checks.ask(path, SECOND, 10.6)
    first, second, third = bench.transaction_ids(path)
    bench.checks.answered(path, first, 10.75)
    assert path.rtt == 0.75
    assert list(path.asks) == [third]
    assert path.round is not None
    assert [e for e in bench.events if isinstance(e, Settled)] == [
        Settled("p", first),
        Settled("p", second),
    ]
    bench.checks.answered(path, third, 10.8)
    assert path.round is None
    assert list(bench.checks.outstanding()) == []


def test_a_very_late_timer_repeats_under_a_new_transaction(bench: Bench) -> None:
    path = bench.paths.add("p")
    bench.checks.ask(path, OURS, 10.0)
    bench.checks.advance(path, 100.0)
    first, second = bench.transaction_ids(path)
    assert first != second
    assert list(path.asks) == [second]


def test_unproven_addresses_are_limited_proven_ones_are_not(bench: Bench) -> None:
    for number in range(MAX_UNPROVEN + 2):
        bench.checks.ask(bench.paths.add(number), OURS, 10.0)
    assert len(bench.datagrams) == MAX_UNPROVEN
    proven = bench.paths.add("proven")
    proven.proof = OURS.ufrag
    bench.checks.ask(proven, OURS, 10.0)
    assert len(bench.datagrams) == MAX_UNPROVEN + 1


def test_consent_is_planned_for_four_to_six_seconds() -> None:
    for byte, due in ((0, 104.0), (128, 105.0), (255, 105.9921875)):
        checks = Checks(Paths(), [], [], bytes([byte]).__mul__)
        path = Path("p")
        checks.plan_consent(path, 100.0)
        assert path.consent_due == due
