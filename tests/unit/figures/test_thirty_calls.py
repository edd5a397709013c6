from tests.figures.thirty_calls import left_over


def test_only_what_there_is_more_of() -> None:
    before = {"descriptors": 16, "tasks": 2, "flows": 1}
    assert left_over(before, {"descriptors": 18, "tasks": 2, "flows": 0}) == {"descriptors": 2}
    assert left_over(before, before) == {}
