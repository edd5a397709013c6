from pathlib import Path

import pytest

from tests.lab.node import REPOSITORY
from tests.lab.program import Programs
from tests.lab.up_state import UpState, load


def test_remembers_what_runs(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    sleeper = programs.start("sleeper", ["sleep", "60"])
    logs = REPOSITORY / "build" / "lab" / "unit"
    UpState.of("xdp", ["http://localhost:8080"], logs, {"sleeper": sleeper}).save(
        tmp_path / "state.json"
    )
    found = load(tmp_path / "state.json")
    assert found is not None
    assert found.logs == "build/lab/unit"
    assert found.ended() == []
    programs.stop_all()
    assert found.ended() == ["sleeper"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"programs": {"relay": []}}'])
def test_an_illegible_file_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    assert load(path) is None
    assert load(tmp_path / "missing.json") is None
