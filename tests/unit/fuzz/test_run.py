from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from relayctl.reason import Reason
from tests import report
from tests.fuzz import run
from tests.fuzz.worker import Progress
from tests.oracle.scene import Scene, Sent, read

SCENE = Scene("spp", (Sent("outer", bytes(14)),))


def test_every_kind_of_difference_is_kept_for_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "OUTPUT", tmp_path / "fuzz")
    monkeypatch.setattr(run, "REPOSITORY", tmp_path)
    run.OUTPUT.mkdir()
    (run.OUTPUT / "found-9.txt").write_text("of an earlier run")
    run.keep(Console(quiet=True), Progress(found=[(SCENE, "frame 0\n  model   FORWARD")]))
    (kept,) = run.OUTPUT.iterdir()
    assert read(kept.read_text()) == [SCENE]


def test_a_difference_is_compared_and_fails() -> None:
    progress = Progress(Counter({Reason.FORWARD: 9}), disagreements=1)
    assert progress.frames == 10
    values = dict(run._values(progress))
    results = {r.name: r.ok for r in report.judge(run.targets(10, 0), values)}
    assert results == {run.COMPARED: True, run.DISAGREEMENTS: False, run.REACHED: False}


def test_a_worker_that_failed_measured_nothing() -> None:
    assert dict(run._values(Progress(error="OSError"))) == {}


def test_parsers_are_asked_for_only_with_time() -> None:
    assert run.CRASHES in [target.name for target in run.targets(10, 1)]
