import pytest

from tests.kernels.controls import CONTROLS, surprises
from tests.kernels.series import MATRIX


def expected(version: tuple[int, int]) -> dict[str, bool]:
    return {control.name: control.accepted_by(version) for control in CONTROLS}


def test_programs_are_whole_instructions_and_end() -> None:
    for control in CONTROLS:
        assert len(control.program) % 8 == 0
        assert control.program[-8:] == b"\x95" + bytes(7)


def test_every_kernel_of_the_matrix_can_be_told_from_every_other() -> None:
    answers = [tuple(expected(series.version).values()) for series in MATRIX]
    assert len({*answers}) == len(MATRIX)


def test_one_program_is_accepted_and_one_refused_everywhere() -> None:
    answers = [expected(series.version) for series in MATRIX]
    assert all(answer["packet byte, bounds checked"] for answer in answers)
    assert not any(answer["packet byte, unchecked"] for answer in answers)


def test_no_surprise() -> None:
    assert surprises((6, 1), expected((6, 1))) == []


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_each_answer_counts(control: object) -> None:
    name = getattr(control, "name", "")
    accepted = expected((6, 1))
    accepted[name] = not accepted[name]
    (sentence,) = surprises((6, 1), accepted)
    assert name in sentence
    assert sentence.endswith("accepted" if accepted[name] else "refused")


def test_an_answer_that_is_missing_is_a_surprise() -> None:
    accepted = expected((6, 1))
    del accepted["load-acquire"]
    assert surprises((6, 1), accepted) == ["control 'load-acquire' was not tried"]
