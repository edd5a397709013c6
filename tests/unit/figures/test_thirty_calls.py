from tests.figures.thirty_calls import left_over


def test_only_what_there_is_more_of() -> None:
    before = {"media_sockets": 1, "descriptors": 16, "tasks": 2, "flows": 1}
    after = {"media_sockets": 3, "descriptors": 18, "tasks": 2, "flows": 0}
    assert left_over(before, after) == {"descriptors": 2}
    assert left_over(before, before) == {}
