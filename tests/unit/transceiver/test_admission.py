from collections import Counter

import pytest

from transceiver.admission import (
    CALLS_OF_REFERENCE,
    MAX_HALF_OPEN,
    MAX_HALF_OPEN_OF_SUBJECT,
    REFERENCE_S,
    Admission,
    Refusal,
    Refused,
    capacity_for,
)

NOBODY: Counter[str] = Counter()


def refusal(
    admission: Admission, live: int = 0, half_open: Counter[str] = NOBODY, subject: str = ""
) -> Refusal | None:
    try:
        admission.admit(live, half_open, subject)
    except Refused as refused:
        return refused.reason
    return None


def test_takes_as_many_calls_as_its_capacity() -> None:
    admission = Admission(3)
    assert refusal(admission, live=2) is None
    assert refusal(admission, live=3) is Refusal.FULL
    assert admission.closed(2) is None
    assert admission.closed(3) is Refusal.FULL


@pytest.mark.parametrize(("late_s", "reason"), [(0.02, None), (0.0201, Refusal.LATENESS)])
def test_takes_none_while_work_is_late(late_s: float, reason: Refusal | None) -> None:
    admission = Admission(3, lambda: late_s, 0.02)
    assert refusal(admission) is reason
    assert admission.closed(0) is reason


def test_takes_none_again_once_it_is_closed() -> None:
    admission = Admission(3)
    admission.close()
    assert refusal(admission) is Refusal.DRAINING
    assert admission.closed(3) is Refusal.DRAINING  # rather than that it is full


def test_bounds_calls_whose_client_does_not_come() -> None:
    admission = Admission(10_000)
    waiting = Counter({"": MAX_HALF_OPEN - 1})
    assert refusal(admission, half_open=waiting) is None
    waiting["x"] = 1
    assert refusal(admission, half_open=waiting) is Refusal.HALF_OPEN


def test_bounds_them_by_subject_where_there_is_one() -> None:
    admission = Admission(100)
    waiting = Counter({"": 50, "me": MAX_HALF_OPEN_OF_SUBJECT, "you": 1})
    assert refusal(admission, half_open=waiting, subject="me") is Refusal.SUBJECT
    assert refusal(admission, half_open=waiting, subject="you") is None
    assert refusal(admission, half_open=waiting) is None


def test_says_by_how_much() -> None:
    with pytest.raises(Refused, match="3 calls of 3"):
        Admission(3).admit(3, NOBODY, "")
    with pytest.raises(Refused, match="45 ms late"):
        Admission(3, lambda: 0.045).admit(0, NOBODY, "")


def test_capacity_follows_the_codec() -> None:
    assert capacity_for(REFERENCE_S) == CALLS_OF_REFERENCE
    assert capacity_for(REFERENCE_S / 2) == 2 * CALLS_OF_REFERENCE
    assert capacity_for(60.0) == 1
