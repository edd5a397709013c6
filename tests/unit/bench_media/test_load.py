"""The generator's bookkeeping has tests of its own, in Go."""

import shutil

import pytest

from tests.bench_media import go


@pytest.mark.skipif(
    not (shutil.which("go") and go.PION.exists()), reason=f"apt install {go.PACKAGES}"
)
def test_what_the_callers_make_of_what_comes_back() -> None:
    done = go.run("load", ["test", "."])
    assert done.returncode == 0, done.stdout + done.stderr
