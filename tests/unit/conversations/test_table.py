from tests.conversations.scripts.table import plans


def test_there_are_a_hundred_and_no_two_are_the_same() -> None:
    names = [plan.name for plan in plans()]
    assert len(names) == len(set(names)) == 100


def test_every_backend_and_both_dialects_take_part() -> None:
    assert {plan.backend for plan in plans()} == {"parrot", "echo", "realtime"}
    assert {plan.beta for plan in plans()} == {True, False}
