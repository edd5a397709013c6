from transceiver.backoff import GOOD_S, LONGEST_S, Backoff


def test_doubles_up_to_a_bound_and_begins_again_after_a_good_life() -> None:
    backoff = Backoff()
    assert [backoff.after(0.1) for _ in range(7)] == [1, 2, 4, 8, 16, LONGEST_S, LONGEST_S]
    assert backoff.failures == 7
    assert backoff.after(GOOD_S) == 1
    assert backoff.failures == 1
    assert backoff.after(GOOD_S - 1) == 2


def test_a_long_row_of_failures_is_no_overflow() -> None:
    backoff = Backoff()
    backoff.failures = 5000
    assert backoff.after(0.0) == LONGEST_S
