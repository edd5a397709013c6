from pathlib import Path

import pytest

from signaling.faces.pipecat_page import AT, PACKAGE, page
from tests.unit.signaling.fake_transceiver import FakeTransceiver, signaling


def test_there_is_none_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    assert page() is None


@pytest.mark.anyio
async def test_it_is_served_without_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / PACKAGE / "client" / "dist"
    files.mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").write_text("raise RuntimeError")
    (files / "index.html").write_text("<p>hello")
    monkeypatch.syspath_prepend(tmp_path)
    _, client = await signaling(FakeTransceiver())
    reply = await client.get(f"{AT}/")
    assert (reply.status_code, reply.text) == (200, "<p>hello")
