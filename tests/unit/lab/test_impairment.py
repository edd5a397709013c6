import itertools

import pytest

from tests.lab.frame import Kind
from tests.lab.impairment import DOWN, UP, Frame, Impairment, Rule

ALICE, BOB = ("10.1.0.2", 5000), ("10.1.0.2", 5001)


def frame(
    direction: str = UP,
    kind: Kind = Kind.RTP,
    client: tuple[str, int] = ALICE,
    size: int = 125,
) -> Frame:
    return Frame(direction, kind, client, size)


def test_without_rules_everything_goes_on_at_once() -> None:
    assert Impairment().decide(frame(), 7.0) == [7.0]


def test_direction_and_kind() -> None:
    impairment = Impairment([Rule(direction=DOWN, kinds=frozenset({Kind.STUN}), drop=1)])
    assert impairment.decide(frame(DOWN, Kind.STUN), 1.0) == []
    assert impairment.decide(frame(UP, Kind.STUN), 1.0) == [1.0]
    assert impairment.decide(frame(DOWN, Kind.RTP), 1.0) == [1.0]


def test_other_traffic_is_spared_unless_named() -> None:
    assert Impairment([Rule(drop=1)]).decide(frame(kind=Kind.OTHER), 1.0) == [1.0]
    everything = Rule(kinds=frozenset(Kind), drop=1)
    assert Impairment([everything]).decide(frame(kind=Kind.OTHER), 1.0) == []


def test_nth_counts_per_client_direction_and_kind() -> None:
    impairment = Impairment([Rule(direction=UP, kinds=frozenset({Kind.DTLS}), nth=(2,), drop=1)])
    impairment.decide(frame(DOWN, Kind.DTLS), 1.0)
    impairment.decide(frame(UP, Kind.STUN), 1.0)
    for client in (ALICE, BOB):
        passed = [bool(impairment.decide(frame(UP, Kind.DTLS, client), 1.0)) for _ in range(3)]
        assert passed == [True, False, True]


def test_loss_has_its_rate_and_its_seed() -> None:
    def run(seed: int) -> list[bool]:
        impairment = Impairment([Rule(drop=0.2)], seed)
        return [bool(impairment.decide(frame(), 1.0)) for _ in range(2000)]

    assert 0.17 < run(1).count(False) / 2000 < 0.23
    assert run(1) == run(1)
    assert run(1) != run(2)


def test_other_traffic_does_not_shift_the_pattern() -> None:
    rules = [Rule(kinds=frozenset({Kind.RTP}), drop=0.5)]
    alone, mixed = Impairment(rules), Impairment(rules)
    for _ in range(100):
        mixed.decide(frame(kind=Kind.STUN), 1.0)
        mixed.decide(frame(DOWN), 1.0)
        assert alone.decide(frame(), 1.0) == mixed.decide(frame(), 1.0)


def test_delays_of_rules_add_up() -> None:
    impairment = Impairment([Rule(delay_s=0.04), Rule(direction=UP, delay_s=0.01)])
    assert impairment.decide(frame(UP), 1.0) == [pytest.approx(1.05)]
    assert impairment.decide(frame(DOWN), 1.0) == [pytest.approx(1.04)]


def test_jitter_keeps_the_order() -> None:
    impairment = Impairment([Rule(delay_s=0.05, jitter_s=0.04)])
    due = [impairment.decide(frame(), n * 0.005)[0] for n in range(500)]
    assert due == sorted(due)
    waits = [at - n * 0.005 for n, at in enumerate(due)]
    assert min(waits) < 0.045
    assert max(waits) > 0.08
    assert max(waits) <= 0.091


def test_jitter_may_mix_the_order_up() -> None:
    impairment = Impairment([Rule(delay_s=0.05, jitter_s=0.04, in_order=False)])
    due = [impairment.decide(frame(), n * 0.02)[0] for n in range(500)]
    overtaken = sum(later < earlier for earlier, later in itertools.pairwise(due))
    assert 100 < overtaken < 400
    waits = [at - n * 0.02 for n, at in enumerate(due)]
    assert 0.01 <= min(waits) < 0.02
    assert 0.08 < max(waits) <= 0.0901


def test_nth_of_one_direction_is_lost_and_no_other() -> None:
    impairment = Impairment([Rule(UP, frozenset({Kind.RTP}), nth=(2, 5), drop=1)])
    up = [bool(impairment.decide(frame(UP), 1.0)) for _ in range(6)]
    assert up == [True, False, True, True, False, True]
    assert all(impairment.decide(frame(DOWN), 1.0) for _ in range(6))


def test_reordered_frames_are_overtaken() -> None:
    impairment = Impairment([Rule(reorder=0.1, reorder_s=0.03)])
    due = [impairment.decide(frame(), n * 0.02)[0] for n in range(500)]
    late = [n for n, at in enumerate(due) if at > n * 0.02]
    assert 25 < len(late) < 80
    assert all(due[n] > due[n + 1] for n in late if n + 1 < 500 and n + 1 not in late)


def test_duplicates() -> None:
    assert Impairment([Rule(duplicate=1)]).decide(frame(), 1.0) == [1.0, 1.0]


def test_rate_serialises_and_overflows() -> None:
    """125 bytes at 100 kbit/s take 10 ms each; 55 ms of queue hold five beside the first."""
    impairment = Impairment([Rule(rate_bps=100_000, queue_s=0.055)])
    due = [impairment.decide(frame(), 1.0) for _ in range(10)]
    assert [at[0] for at in due if at] == pytest.approx([1.01, 1.02, 1.03, 1.04, 1.05, 1.06])
    assert impairment.decide(frame(DOWN), 1.0) == [pytest.approx(1.01)]
    assert impairment.decide(frame(), 2.0) == [pytest.approx(2.01)]
