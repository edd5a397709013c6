import ast
from pathlib import Path

import pytest

from tests.kernels import judge
from tests.kernels.guest import LEFT_OUT, LEFT_OUT_BEFORE_6_9, STEPS, selection
from tests.kernels.series import MATRIX


@pytest.mark.parametrize("left_out", LEFT_OUT + LEFT_OUT_BEFORE_6_9)
def test_what_is_left_out_exists(left_out: str) -> None:
    """Under another name it would be back in every guest."""
    file, _, test = left_out.partition("::")
    tree = ast.parse((Path("tests/kernel") / file).read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert not test or test in names


def test_every_step_is_known() -> None:
    for series in MATRIX:
        assert {*judge.steps(series)} <= STEPS.keys()


def test_selection_goes_by_the_kernel() -> None:
    old, new = selection("6.1.0-57-cloud-amd64"), selection("6.12.117+deb12-cloud-amd64")
    assert [*old[: len(new)]] == new
    assert len(old) - len(new) == len(LEFT_OUT_BEFORE_6_9)
    assert "--ignore=tests/kernel/test_compile.py" in new
    assert old[-1].startswith("--deselect=tests/kernel/test_vlan.py::")
